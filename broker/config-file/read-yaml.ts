/**
 * Reads governance text as plain data, with the place of each part. Supports the usual part of YAML 1.2: maps, lists, texts,
 * numbers, booleans, anchors and aliases. Other features of YAML (tags, several documents, merge keys, keys that are not text) are
 * refused, because parsers interpret them differently.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { type Path, type Problem, type Source, shorten, sortProblems } from './problems.ts';
import { refuseText, unstorable } from './yaml-limits.ts';

const MAX_DEPTH = 32;
const MAX_ALIASES = 200;
/** Includes the values that aliases stand for, so that ten lines cannot expand to a billion values. */
const MAX_VALUES = 500_000;

/** Replacements for messages of the parser. */
const WORDS: Readonly<Record<string, string>> = {
  RESOURCE_EXHAUSTION: 'is nested too deeply',
  MULTIPLE_DOCS: 'is a second document ("---"); a governance file has one',
  TAB_AS_INDENT: 'the line is indented with a tab; use spaces',
  NON_STRING_KEY: 'the name of a member must be text',
};

/** Parses YAML (or JSON, a subset of YAML) of at most 8 MiB. Never throws. */
export function readYaml(
  text: string,
  file: string,
): { ok: true; value: unknown; source: Source } | { ok: false; problems: Problem[] } {
  const body = text.startsWith('\ufeff') ? text.slice(1) : text;
  const lines = new LineCounter();
  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const problem = (offset: number, message: string): Problem => ({ file, ...place(offset), path: '', message });

  const refusal = refuseText(body);
  if (refusal) {
    countLines(body, lines);
    return { ok: false, problems: [problem(refusal.offset, refusal.message)] };
  }
  const parsed = parseDocument(body, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    merge: false,
    // The parser compares each key with all others (quadratic); `walk` checks uniqueness with a set.
    uniqueKeys: false,
  });
  if (parsed.errors.length > 0) {
    const problems = parsed.errors
      .slice(0, 1000)
      .map(({ code, message, pos }) => problem(pos[0], WORDS[code] ?? `is not YAML: ${shorten(message, 160)}`));
    return { ok: false, problems: sortProblems(problems) };
  }
  // Version 1.1 does not interpret `yes`, `on` and `1:30` as text.
  if (parsed.directives?.yaml.explicit && parsed.directives.yaml.version !== '1.2')
    return { ok: false, problems: [problem(0, 'is written for another version of YAML; leave the "%YAML" line out')] };
  const walk = new Walk((node, message) => problem(node.range?.[0] ?? 0, message));
  const value = walk.read(parsed.contents, 0);
  if (walk.problems.length > 0) return { ok: false, problems: sortProblems(walk.problems) };
  const root = parsed.contents;
  const locate: Source['locate'] = (path, at) => place(root === null ? 0 : offsetOf(root, path, at, walk.targets));
  return { ok: true, value, source: { file, locate } };
}

/** Converts nodes to plain values, in the order of the text; an alias means the anchor before it. */
class Walk {
  readonly problems: Problem[] = [];
  /** The node that each alias stands for. */
  readonly targets = new Map<Node, Node>();
  readonly #problem: (node: Node, message: string) => Problem;
  readonly #anchors = new Map<string, { node: Node; value: unknown; size: number } | 'open'>();
  #values = 0;
  #aliases = 0;

  constructor(problem: (node: Node, message: string) => Problem) {
    this.#problem = problem;
  }

  read(node: Node | null, depth: number): unknown {
    if (node === null) return null;
    if (depth > MAX_DEPTH) return this.#refuse(node, 'is nested too deeply');
    if (++this.#values > MAX_VALUES)
      return this.#refuse(node, `has more than ${MAX_VALUES} values; a governance file has at most that`);
    if (isAlias(node)) return this.#readAlias(node);
    if (node.tag !== undefined && node.tag !== 'tag:yaml.org,2002:str')
      this.#refuse(node, `the tag "${shorten(node.tag, 40)}" is not supported; write the value without it`);
    const before = this.#values;
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, 'open');
    const value = this.#readValue(node, depth);
    if (anchor !== undefined) this.#anchors.set(anchor, { node, value, size: this.#values - before });
    return value;
  }

  #readValue(node: Node, depth: number): unknown {
    if (isSeq(node)) return node.items.map((item) => this.read(item as Node | null, depth + 1));
    if (isMap(node)) {
      const value: Record<string, unknown> = {};
      const seen = new Map<string, Node>();
      for (const pair of node.items) {
        const key = pair.key as Node;
        const name = isScalar(key) ? String(key.value ?? '') : '';
        this.#checkKey(key, name, seen);
        const member = this.read(pair.value as Node | null, depth + 1);
        if (name !== '__proto__') value[name] = member;
      }
      return value;
    }
    const scalar = isScalar(node) ? node.value : undefined;
    if (typeof scalar === 'string') {
      // An escape ("\0") can produce characters that are not allowed in the text itself.
      const refusal = unstorable(scalar);
      if (refusal) this.#refuse(node, refusal.message);
    }
    return scalar;
  }

  #checkKey(key: Node, name: string, seen: Map<string, Node>): void {
    const refusal = unstorable(name);
    if (!isScalar(key) || name === '') this.#refuse(key, 'the name of a member must be text');
    else if (refusal) this.#refuse(key, refusal.message);
    else if (name === '__proto__') this.#refuse(key, '"__proto__" cannot be a name here');
    else if (seen.has(name)) this.#refuse(key, `"${shorten(name)}" is there twice; keep one of them`);
    else if (key.anchor !== undefined || key.tag !== undefined)
      this.#refuse(key, 'a name cannot have an anchor or a tag');
    seen.set(name, key);
  }

  #readAlias(node: Node & { source: string }): unknown {
    const found = this.#anchors.get(node.source);
    if (found === undefined) return this.#refuse(node, `there is no anchor "&${shorten(node.source, 40)}" before this`);
    if (found === 'open') return this.#refuse(node, `"*${shorten(node.source, 40)}" is an alias inside its own anchor`);
    this.#values += found.size;
    if (++this.#aliases > MAX_ALIASES || this.#values > MAX_VALUES)
      return this.#refuse(node, 'there are too many aliases; write the values out');
    this.targets.set(node, found.node);
    return found.value;
  }

  #refuse(node: Node, message: string): undefined {
    // Stops after many problems: a size problem would repeat for each value.
    if (this.problems.length < 1000) this.problems.push(this.#problem(node, message));
    return undefined;
  }
}

/** Returns the offset of the node at `path`: of a scalar itself, of a map or list by its member name. */
function offsetOf(root: Node, path: Path, at: 'key' | undefined, targets: ReadonlyMap<Node, Node>): number {
  let node: Node = root;
  let offset = root.range?.[0] ?? 0;
  for (const [index, part] of path.entries()) {
    const inside: Node = targets.get(node) ?? node;
    let child: Node | null | undefined;
    let key: Node | undefined;
    if (isMap(inside)) {
      const pair = inside.items.find((item) => isScalar(item.key) && item.key.value === part);
      if (pair === undefined) return offset;
      key = pair.key as Node;
      child = pair.value as Node | null;
    } else if (isSeq(inside) && typeof part === 'number') child = inside.items[part] as Node | null | undefined;
    const last = index === path.length - 1;
    const plain = isScalar(child) && child.value !== null;
    offset = (key !== undefined && (!plain || (last && at === 'key')) ? key.range?.[0] : child?.range?.[0]) ?? offset;
    if (child === null || child === undefined) return offset;
    node = child;
  }
  return offset;
}

function countLines(text: string, lines: LineCounter): void {
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
}
