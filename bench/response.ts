/** As much of an HTTP/1.1 client as the load generator needs: where an answer ends, and its status (RFC 9112). */

export type ResponseReader = {
  /**
   * Takes the next bytes of the connection; answers the status when they complete an answer, 0 when more is to come.
   * Throws when the bytes are no answer, or go on after it: nothing here pipelines.
   */
  push(bytes: Buffer): number;
};

const HEAD_END = Buffer.from('\r\n\r\n');
const MOST_BYTES = 16 * 1024 * 1024;

/** A reader for one connection, ready for the next answer whenever one is complete. */
export function createResponseReader(): ResponseReader {
  /** Bytes of the present answer, kept only while it came in pieces and where it ends is not known. */
  let kept: Buffer | undefined;
  /** Content bytes still to come, once the head was read; their text is not looked at. */
  let missing = 0;
  let status = 0;

  return {
    push(bytes) {
      if (missing > 0) {
        missing -= bytes.length;
        if (missing < 0) throw new Error('The answer is longer than its Content-Length.');
        return missing === 0 ? status : 0;
      }
      // The caller's buffer is used again for the next bytes, so what is kept has to be a copy.
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
    if (all.length > MOST_BYTES) throw new Error('The answer is too long.');
    kept = Buffer.from(all);
    return 0;
  }
}

/** RFC 9112 section 6.3. An answer that ends with its connection is not measured here. */
function contentLengthOf(head: string, status: number): number | 'chunked' {
  if (status === 204 || status === 304) return 0;
  const length = /\r\ncontent-length:[ \t]*(\d+)/i.exec(head);
  if (length) return Number(length[1]);
  if (/\r\ntransfer-encoding:[ \t]*chunked/i.test(head)) return 'chunked';
  throw new Error('The answer has neither Content-Length nor chunks.');
}

/** RFC 9112 section 7.1, without trailers. True when the last chunk is here, and ends the bytes. */
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
