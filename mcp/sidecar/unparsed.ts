/** Answers to input that Node's HTTP parser rejects before there is a request. */
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';

const NO_HTTP2 = 'HTTP/2 is not served here: use HTTP/1.1.';

/** RFC 9113: a server begins with its settings (section 6.5); the GOAWAY carries HTTP_1_1_REQUIRED (sections 6.8 and 7). */
function refusalPage(detail: string): Buffer {
  const said = Buffer.from(detail);
  const settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
  const head = [0, 0, 8 + said.length, 7, 0, 0, 0, 0, 0];
  return Buffer.concat([Buffer.from([...settings, ...head, 0, 0, 0, 0, 0, 0, 0, 0x0d]), said]);
}

/** The statuses that Node itself answers with when there is no listener. */
const STATUS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Makes the server answer clients that begin with HTTP/2 without an upgrade request in HTTP/2, with an error that HTTP/2 is not supported. */
export function refuseUnparsed(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const { code = '' } = error;
    if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    if (code === 'HPE_PAUSED_H2_UPGRADE') return void socket.end(refusalPage(NO_HTTP2));
    socket.end(`HTTP/1.1 ${STATUS[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  });
}
