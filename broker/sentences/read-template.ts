/**
 * Generates the sentence of a read from the form of its path: `GET /v1/charges/*` reads a charge, `GET /repos/*` with `/labels` below lists labels. All words
 * come from the path, so that the sentence says no more than the path does. Sentences for paths of other forms are written by hand.
 */

/** Naming exceptions for the paths of a platform. */
export type ReadWords = {
  /** Prefixes without a meaning, such as `/v1`; the first that matches is removed. */
  prefixes?: readonly string[];
  /** By a pattern (`/repos/*` and so on): the name of the object to which everything below it belongs, with `{1}` for the first `*`. */
  owners?: Readonly<Record<string, string>>;
  /** Names of segments, in the plural, where they differ from the path's spelling. */
  words?: Readonly<Record<string, string>>;
};

const ACRONYMS = new Set(['gpg', 'ssh', 'oidc', 'sbom', 'jql', 'imap', 'pop', 'ekm', 'id']);
/** Words that end in "s" and are singular. */
const ONE_THING = /(?:us|ss|sis|settings|permissions|stats|analytics|preferences|details)$/;
const ENDINGS: readonly [RegExp, string][] = [
  [/ies$/, 'y'],
  [/(ss|sh|x|tus)es$/, '$1'],
  [/(?<!ca)ches$/, 'ch'],
  [/s$/, ''],
];

/** Converts `api_keys`, `api-keys` and `apiKeys` to "api keys". */
const nameAsWords = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[-_. ]+/)
    .map((word) => (ACRONYMS.has(word.toLowerCase()) ? word.toUpperCase() : word.toLowerCase()))
    .join(' ');

const isPlural = (words: string): boolean => words.endsWith('s') && !ONE_THING.test(words);

/** Converts plural to singular: `policies` to policy, `branches` to branch, `statuses` to status. Other words are unchanged. */
function singular(words: string): string {
  if (!isPlural(words)) return words;
  const [ending, instead] = ENDINGS.find(([one]) => one.test(words)) ?? [/$/, ''];
  return words.replace(ending, instead);
}

/** Returns a template for a `GET` of this path pattern; undefined when the path does not have a supported form. */
export function readTemplate(
  pattern: string,
  { prefixes = [], owners = {}, words = {} }: ReadWords,
): string | undefined {
  const prefix = prefixes.find((one) => pattern.startsWith(`${one}/`)) ?? '';
  const path = pattern.slice(prefix.length);
  const owner = Object.keys(owners)
    .filter((one) => path.startsWith(`${one}/`))
    .toSorted((a, b) => b.length - a.length)[0];
  const walk = new Walk(
    starsOf(prefix),
    words,
    owner === undefined ? undefined : shifted(owners[owner] ?? '', starsOf(prefix)),
  );
  if (owner !== undefined) walk.star += starsOf(owner);
  const segments = path.slice((owner ?? '').length + 1).split('/');
  return walk.template(segments);
}

const starsOf = (pattern: string): number => pattern.split('*').length - 1;

/** Shifts the placeholders of an owner's phrase whose first `*` is not the first of the path. */
const shifted = (phrase: string, by: number): string =>
  phrase.replace(/\{(\d)\}/g, (_, index) => `{${Number(index) + by}}`);

/** Walks along a path and tracks what belongs to what. `star`: the number of `*` passed. */
class Walk {
  star: number;
  readonly #words: Readonly<Record<string, string>>;
  /** The phrase of the object to which the rest of the path belongs. */
  #of: string | undefined;
  /** Segments since the last `*`, which name what comes next. */
  #names: string[] = [];

  constructor(star: number, words: Readonly<Record<string, string>>, owner: string | undefined) {
    this.star = star;
    this.#words = words;
    this.#of = owner;
  }

  template(segments: readonly string[]): string | undefined {
    for (const [at, segment] of segments.entries()) {
      const isLast = at === segments.length - 1;
      if (segment === '**' && isLast) return this.#rest();
      if (segment.includes('*') && !/^\*{1,2}$/.test(segment)) return undefined;
      if (!segment.includes('*')) this.#names.push(segment);
      else if (this.#names.length === 0) return undefined;
      else this.#of = this.#item(segment === '**' ? '{**}' : `{${++this.star}}`);
      if (segment === '*' && this.star > 9) return undefined;
    }
    if (this.#names.length === 0) return this.#of === undefined ? undefined : `read ${this.#of}`;
    return this.#several();
  }

  #name(): string {
    return this.#names
      .map((name) => this.#words[name] ?? nameAsWords(name))
      .filter((name) => name !== '')
      .join(' ');
  }

  #belonging(): string {
    return this.#of === undefined ? '' : ` of ${this.#of}`;
  }

  /** Returns `charge **{1}**` and its owner. */
  #item(place: string): string {
    const item = `${singular(this.#name())} **${place}**${this.#belonging()}`;
    this.#names = [];
    return item;
  }

  #several(): string {
    const last = this.#names.at(-1);
    if (this.#names.length > 1 && (last === 'search' || last === 'count')) {
      this.#names.pop();
      return `${last} the ${this.#name()}${this.#belonging()}`;
    }
    const name = this.#name();
    const whose = this.#belonging();
    if (!isPlural(name)) return `read the ${name}${whose}`;
    return whose === '' ? `list ${name}` : `list the ${name}${whose}`;
  }

  /** For `**`: the rest may name an item, or a part of one, so it is shown as it is written. */
  #rest(): string | undefined {
    if (this.#names.length === 0) return this.#of === undefined ? undefined : `read[ **{**}** of] ${this.#of}`;
    const name = this.#name();
    const list = isPlural(name) ? 'list' : 'read';
    return `[read **{**}** in|${list}] the ${name}${this.#belonging()}`;
  }
}

/** Returns a template for a field of GraphQL queries that follows common naming. */
export function queryTemplate(field: string): string {
  const words = nameAsWords(field);
  const [first = '', ...others] = words.split(' ');
  if (first === 'search' && others.length > 0) return `search ${others.join(' ')}[: *{/query}*| for *{/term}*]`;
  return isPlural(words) ? `list ${words}` : `read the ${words}[ **{/id}**]`;
}
