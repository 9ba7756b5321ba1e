/** A minimal HTTP/1.1 response parser for the load generator: finds the end of an answer and its status (RFC 9112). */

export type ResponseReader = {
  /**
   * Takes the next bytes of the connection. Returns the status when they complete an answer, 0 when more bytes are needed.
   * Throws when the bytes are not an HTTP answer, or continue after its end: requests are not pipelined.
   */
  push(bytes: Buffer): number;
};

const HEAD_END = Buffer.from('\r\n\r\n');
const MAX_BYTES = 16 * 1024 * 1024;

/** Creates a reader for one connection, which accepts the next answer when one is complete. */
export function createResponseReader(): ResponseReader {
  /** Bytes of an answer that arrives in pieces, kept until its length is known. */
  let kept: Buffer | undefined;
  /** Content bytes still to come after the head; they are counted and not parsed. */
  let missing = 0;
  let status = 0;

  return {
    push(bytes) {
      if (missing > 0) {
        missing -= bytes.length;
        if (missing < 0) throw new Error('The answer is longer than its Content-Length.');
        return missing === 0 ? status : 0;
      }
      // The caller reuses its buffer for the next bytes, so kept bytes must be a copy.
      const all = kept ? Buffer.concat([kept, bytes]) : bytes;
      kept = undefined;
      const headEnd = all.indexOf(HEAD_END);
      if (headEnd === -1) return keep(all);
      const head = all.toString('latin1', 0, headEnd);
      if (!head.startsWith('HTTP/1.1 ')) throw new Error('The answer is not HTTP/1.1.');
      status = Number(head.slice(9, 12));
      const start = headEnd + HEAD_END.length;
      const length = contentLengthOf(head, status);
      if (length === 'chunked') return chunksEnd(all, start) ? status : keep(all);
      missing = length - (all.length - start);
      if (missing < 0) throw new Error('The answer is longer than its Content-Length.');
      return missing === 0 ? status : 0;
    },
  };

  function keep(all: Buffer): 0 {
    if (all.length > MAX_BYTES) throw new Error('The answer is too long.');
    kept = Buffer.from(all);
    return 0;
  }
}

/** Returns the content length (RFC 9112 section 6.3). Answers that end by closing the connection are not supported. */
function contentLengthOf(head: string, status: number): number | 'chunked' {
  if (status === 204 || status === 304) return 0;
  const length = /\r\ncontent-length:[ \t]*(\d+)/i.exec(head);
  if (length) return Number(length[1]);
  if (/\r\ntransfer-encoding:[ \t]*chunked/i.test(head)) return 'chunked';
  throw new Error('The answer has neither Content-Length nor chunks.');
}

/** Whether the bytes end with the last chunk (RFC 9112 section 7.1, without trailers). */
function chunksEnd(bytes: Buffer, from: number): boolean {
  let at = from;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return false;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error('The answer has a chunk without a size.');
    at = lineEnd + 2 + size + 2;
    if (at > bytes.length) return false;
    if (size > 0) continue;
    if (at !== bytes.length) throw new Error('The answer goes on after its last chunk.');
    return true;
  }
}
