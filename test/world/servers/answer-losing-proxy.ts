/** A proxy to PostgreSQL that loses an answer: the server has executed the statement, and the client cannot know. */
import net, { type Socket } from 'node:net';
import { listenOnLoopback } from '../listen.ts';
import { afterFile } from '../runner/after-file.ts';

export type AnswerLosingProxy = {
  /** The server's URL, through the proxy. */
  url: string;
  /**
   * Closes the connection instead of delivering the answer to the next request that contains this text; `andAllThatFollows`: and all other
   * connections, until repaired.
   */
  loseAnswerTo(text: string, options?: { andAllThatFollows: boolean }): void;
  repair(): void;
  /** The number of lost answers. */
  lost(): number;
};

/** Starts a proxy to the host and port of a database's URL. */
export async function startAnswerLosingProxy(url: string): Promise<AnswerLosingProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let wanted: string | undefined;
  let isLast = false;
  let isAway = false;
  let lost = 0;
  const server = net.createServer((near) => {
    if (isAway) {
      near.destroy();
      return;
    }
    const far = net.connect(Number(target.port || 5432), target.hostname);
    let losing = false;
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.on('data', (chunk) => {
      if (wanted !== undefined && chunk.includes(wanted)) {
        wanted = undefined;
        losing = true;
      }
      far.write(chunk);
    });
    far.on('data', (chunk) => {
      if (!losing) near.write(chunk);
      // `Z`, ready for the next query: the transaction has ended.
      else if (chunk.includes(Buffer.from([0x5a, 0, 0, 0, 5]))) {
        lost++;
        near.destroy();
        if (!isLast) return;
        isAway = true;
        for (const socket of sockets) socket.destroy();
      }
    });
  });
  const port = await listenOnLoopback(server);
  afterFile(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String(port);
  return {
    url: through.href,
    loseAnswerTo: (text, { andAllThatFollows } = { andAllThatFollows: false }) => {
      wanted = text;
      isLast = andAllThatFollows;
    },
    repair: () => {
      isAway = false;
    },
    lost: () => lost,
  };
}
