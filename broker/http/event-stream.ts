/** Server-Sent Events (HTML, section 9.2): a response that goes on, to a reader who keeps up. */
import { leaving } from './leaving.ts';
import type { Reply } from './reply.ts';

export type EventStream = {
  /** `id`: what the reader sends back as Last-Event-ID when it comes again. */
  send(event: string, data: unknown, id?: string): void;
  /** Ends it: the browser comes again by itself. */
  end(): void;
};

const HEARTBEAT_MS = 15_000;
/** What may lie here unread, beyond what the system keeps for the connection. */
const MOST_UNREAD_BYTES = 64 * 1024;
/** How soon a browser asks again when the stream ended. */
const AGAIN_MS = 2_000;

/**
 * Answers a stream of events until `begin`'s stream is ended, the reader leaves, or `stillMay` says no at a heartbeat.
 * `begin` answers what is to be undone at the end. A reader who does not read is cut off: nothing is kept without bound.
 */
export function eventStream(begin: (stream: EventStream) => () => void, stillMay: () => Promise<boolean>): Reply {
  return {
    status: 200,
    type: 'text/event-stream; charset=utf-8',
    // For proxies that collect an answer before they pass it on (nginx).
    headers: { 'X-Accel-Buffering': 'no' },
    stream: (response) => {
      const write = (text: string) => {
        if (response.writableEnded || response.destroyed) return;
        response.write(text);
        if (response.writableLength > MOST_UNREAD_BYTES) response.destroy();
      };
      const end = () => {
        if (!response.writableEnded) response.end();
      };
      write(`retry: ${AGAIN_MS}\n\n`);
      const undo = begin({
        send: (event, data, id) =>
          write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
        end,
      });
      const beat = setInterval(async () => {
        // Still unread after a whole beat: nobody is there.
        if (response.writableLength > 0) response.destroy();
        // Where that cannot be known now, whoever may comes again.
        else if (await stillMay().catch(() => false)) write(': heartbeat\n\n');
        else end();
      }, HEARTBEAT_MS);
      leaving(response, () => {
        clearInterval(beat);
        undo();
      });
    },
  };
}
