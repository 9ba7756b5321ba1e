/** Problems of a governance file, with their place, in words for the person who wrote the file. */

/** A path in the document: `['agents', 'triage', 'grants', 'crm', 'scopes', 0]`. */
export type Path = readonly (string | number)[];

/** `line` and `column` count from 1; both are absent when the document was not a text but an object of the program. */
export type Problem = { file: string; line?: number; column?: number; path: string; message: string };

/** A problem without its line. `at: 'key'` points at the member's name instead of its value. */
export type Finding = { path: Path; message: string; at?: 'key' };

/** The source of a document, to find lines in it. */
export type Source = {
  file: string;
  /** Returns the place of the value at `path`, or of the nearest value around it. */
  locate(path: Path, at?: 'key'): { line: number; column: number } | undefined;
};

/** A person fixes no more at a time, and a file that is not YAML has a problem in every line. */
const MAX_PROBLEMS = 50;

/** Adds lines to findings, in the order of the file, at most 50. */
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

/** Returns problems in the order of the file, at most 50. */
export function sortProblems(problems: readonly Problem[]): Problem[] {
  return problems
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
    .slice(0, MAX_PROBLEMS);
}

/** Formats `governance.yaml:12:5: agents.triage.owner: …`, which editors and terminals turn into a link. */
export function formatProblem({ file, line, column, path, message }: Problem): string {
  const place = line === undefined ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place}: ${message}` : `${place}: ${path}: ${message}`;
}

/** Formats `agents.triage.grants.crm.scopes[0]`; names that are not plain words are quoted. */
export function formatPath(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[\w-]+$/.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(shorten(part))}]`;
  }
  return text;
}

/** Truncates a text of the file for a message: a long text may be a secret in the wrong place. */
export function shorten(text: string, most = 80): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

/** Formats `"a", "b" and "c"`, with at most twelve names. */
export function listNames(names: Iterable<string>): string {
  const all = [...names];
  const shown = all.slice(0, 12).map((name) => JSON.stringify(shorten(name)));
  if (all.length > shown.length) return `${shown.join(', ')} and ${all.length - shown.length} more`;
  return shown.length < 2 ? (shown[0] ?? 'none') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}
