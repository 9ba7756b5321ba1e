/** Reads a JSON request body, bounded in size. */
import type { IncomingMessage } from 'node:http';
import { problem, type Reply } from './route.ts';

const MAX_BYTES = 65_536;

/** The parsed body, or the refusal: 415 for anything but plain JSON, 413 over 64 KiB, 400 for invalid JSON. */
export async function readJson(request: IncomingMessage): Promise<{ value: unknown } | { reply: Reply }> {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type)) {
    return { reply: problem(415, 'unsupported_media_type', 'Send JSON, with Content-Type: application/json.') };
  }
  if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    return { reply: problem(415, 'unsupported_content_encoding', 'Send the body without a Content-Encoding.') };
  }
  const bytes = await readBytes(request);
  if (bytes === undefined) {
    return { reply: problem(413, 'body_too_large', `A body has at most ${MAX_BYTES} bytes.`) };
  }
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    return { reply: problem(400, 'invalid_json', 'The body is not JSON in UTF-8.') };
  }
}

/** Undefined when the body is too large, by Content-Length or actually. Rejects when the client disconnects. */
async function readBytes(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BYTES) return undefined;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_BYTES) {
        request.pause();
        resolve(undefined);
      } else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('The client disconnected before its body was complete.')));
  });
}
