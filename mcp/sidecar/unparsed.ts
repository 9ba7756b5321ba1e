/** What Node's parser turns away before there is a request, and what the one who asked is told. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';

const NO_HTTP2 = 'HTTP/2 is not served here: use HTTP/1.1.';

/** RFC 9113: a server begins with its settings (section 6.5), and GOAWAY tells HTTP_1_1_REQUIRED (sections 6.8 and 7). */
function goAway(detail: string): Buffer {
  const said = Buffer.from(detail);
  const settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
  const head = [0, 0, 8 + said.length, 7, 0, 0, 0, 0, 0];
  return Buffer.concat([Buffer.from([...settings, ...head, 0, 0, 0, 0, 0, 0, 0, 0x0d]), said]);
}

/** As Node itself answers where nobody listens. */
const STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Makes the server tell clients that begin with HTTP/2, without asking for it first, in their own protocol that it is not spoken. */
export function refuseUnparsed(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const { code = '' } = error;
    if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    if (code === 'HPE_PAUSED_H2_UPGRADE') return void socket.end(goAway(NO_HTTP2));
    socket.end(`HTTP/1.1 ${STATUS[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  });
}
