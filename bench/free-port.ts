/** A port for servers that do not report the port they listen on. */
import { type AddressInfo, createServer } from 'node:net';

/** Returns a loopback port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
