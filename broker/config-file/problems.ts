/** What is wrong with a governance file, and where, in words for the person who wrote it. */

/** Where something stands in the document: `['agents', 'triage', 'grants', 'crm', 'scopes', 0]`. */
export type Path = readonly (string | number)[];

/** `line` and `column` count from 1; both are absent when the document was no text but an object of the program. */
export type Problem = { file: string; line?: number; column?: number; path: string; message: string };

/** A problem before anyone looked up its line. `at: 'key'` points at the member's name instead of its value. */
export type Finding = { path: Path; message: string; at?: 'key' };

/** Where a document came from, to point into it. */
export type Source = {
  file: string;
  /** The place of what stands at `path`, or of the nearest thing around it. */
  locate(path: Path, at?: 'key'): { line: number; column: number } | undefined;
};

/** Nobody fixes more than this at once, and a file that is no YAML at all has a problem a line. */
const MOST_PROBLEMS = 50;

/** Gives findings their lines, in the order of the file, at most 50. */
export function placeFindings(source: Source, findings: readonly Finding[]): Problem[] {
  const problems = findings.map(({ path, message, at }) => ({
    file: source.file,
    ...source.locate(path, at),
    path: formatPath(path),
    message,
  }));
  const distinct = new Map(problems.map((problem) => [formatProblem(problem), problem]));
  return sortProblems([...distinct.values()]);
}

/** Problems in the order of the file, at most 50 of them. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  return problems
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
    .slice(0, MOST_PROBLEMS);
}

/** `governance.yaml:12:5: agents.triage.owner: …`, the form that editors and terminals make a link of. */
export function formatProblem({ file, line, column, path, message }: Problem): string {
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place}: ${message}` : `${place}: ${path}: ${message}`;
}

/** `agents.triage.grants.crm.scopes[0]`; names that are no plain words are quoted. */
export function formatPath(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[\w-]+$/.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(shorten(part))}]`;
  }
  return text;
}

/** Text of the file as a message may repeat it: what is long is cut, for it may be a secret in the wrong place. */
export function shorten(text: string, most = 80): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

/** `"a", "b" and "c"`, at most twelve of them. */
export function listNames(names: Iterable<string>): string {
  const all = [...names];
  const shown = all.slice(0, 12).map((name) => JSON.stringify(shorten(name)));
  if (all.length > shown.length) return `${shown.join(', ')} and ${all.length - shown.length} more`;
  return shown.length < 2 ? (shown[0] ?? 'none') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
