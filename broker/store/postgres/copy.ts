/** PostgreSQL's COPY: many new rows in one statement, without planning and without parameters. */
import type pg from 'pg';

const SPECIAL = /[\\\n\r\t]/;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Encodes rows of texts, numbers and nulls in COPY's text format (PostgreSQL, COPY, File Formats). */
export function copyText(rows: readonly (readonly unknown[])[]): string {
  let text = '';
  for (const row of rows) {
    for (let at = 0; at < row.length; at++) text += at === 0 ? field(row[at]) : `\t${field(row[at])}`;
    text += '\n';
  }
  return text;
}

function field(value: unknown): string {
  // Undefined is NULL, as for parameters of a statement.
  if (value === null || value === undefined) return '\\N';
  const text = String(value);
  return SPECIAL.test(text) ? text.replaceAll(/[\\\n\r\t]/g, (found) => ESCAPES[found] ?? found) : text;
}

/** Methods of pg for COPY that its type definitions lack. */
type CopyConnection = pg.Connection & { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void };

/**
 * `copy … from stdin`, pipelined: the rows are sent without waiting for the server's CopyInResponse, which saves a round trip. A
 * server that refuses the statement discards them (PostgreSQL, Message Flow, COPY Operations).
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

  // Callbacks of pg.

  handleCopyInResponse(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#end(null);
  }

  handleError(error: Error): void {
    this.#end(error);
  }
}
