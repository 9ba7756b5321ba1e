/** PostgreSQL's COPY: many new rows in one statement, without a plan and without a parameter for each value. */
import type pg from 'pg';

const SPECIAL = /[\\\n\r\t]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Rows of texts, numbers and nulls in COPY's text format (PostgreSQL, COPY, File Formats). */
export function copyText(rows: readonly (readonly unknown[])[]): string {
  let text = '';
  for (const row of rows) {
    for (let at = 0; at < row.length; at++) text += at === 0 ? field(row[at]) : `\t${field(row[at])}`;
    text += '\n';
  }
  return text;
}

function field(value: unknown): string {
  // As parameters of a statement go: what is not there is null.
  if (value === null || value === undefined) return '\\N';
  const text = String(value);
  return SPECIAL.test(text) ? text.replaceAll(/[\\\n\r\t]/g, (found) => ESCAPES[found] ?? found) : text;
}

/** What pg has for streams of rows, and its types do not name. */
type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void };

/**
 * `copy … from stdin` with all its rows at once, not after the server has said that it is ready for them: half of the time
 * would go by on the way. A server that does not want them leaves them unread (PostgreSQL, Message Flow, COPY Operations).
 *
 * `end` is called once: with the error, or with null when the rows are durable.
 */
export class CopyIn implements pg.Submittable {
  readonly #statement: string;
  readonly #rows: Buffer;
  readonly #end: (error: Error | null) => void;

  constructor(statement: string, text: string, end: (error: Error | null) => void) {
    this.#statement = statement;
    this.#rows = Buffer.from(text);
    this.#end = end;
  }

  submit(to: pg.Connection): null {
    const connection = to as CopyConnection;
    connection.stream.cork();
    connection.query(this.#statement);
    connection.sendCopyFromChunk(this.#rows);
    connection.endCopyFrom();
    connection.stream.uncork();
    return null;
  }

  // What follows is called by pg.

  handleCopyInResponse(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#end(null);
  }

  handleError(error: Error): void {
    this.#end(error);
  }
}
