/** Server-Sent Events (HTML, section 9.2), with a limit for readers that fall behind. */
import { onDisconnect } from './disconnects.ts';
import type { Reply } from './reply.ts';

export type EventStream = {
  /** Sends an event. `id`: the browser returns it as Last-Event-ID when it reconnects. */
  send(event: string, data: unknown, id?: string): void;
  /** Ends the stream; the browser reconnects by itself. */
  end(): void;
};

const HEARTBEAT_MS = 15_000;
/** Limit of unread bytes, beyond what the system buffers for the connection. */
const MAX_UNREAD_BYTES = 64 * 1024;
/** Delay after which a browser reconnects when the stream ended. */
const RETRY_DELAY_MS = 2_000;

/**
 * Answers with a stream of events until the stream is ended, the reader disconnects, or `stillMay` returns false at a heartbeat. `begin` returns a
 * cleanup function. A reader that does not read is disconnected, so that no unbounded data is buffered.
 */
export function eventStream(begin: (stream: EventStream) => () => void, stillMay: () => Promise<boolean>): Reply {
  return {
    status: 200,
    type: 'text/event-stream; charset=utf-8',
    // Turns off the response buffering of nginx.
    headers: { 'X-Accel-Buffering': 'no' },
    stream: (response) => {
      const write = (text: string) => {
        if (response.writableEnded || response.destroyed) return;
        response.write(text);
        if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
      };
      const end = () => {
        if (!response.writableEnded) response.end();
      };
      write(`retry: ${RETRY_DELAY_MS}\n\n`);
      const undo = begin({
        send: (event, data, id) =>
          write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
        end,
      });
      const beat = setInterval(async () => {
        // Still unread after a whole heartbeat interval: the reader is gone.
        if (response.writableLength > 0) response.destroy();
        // When that cannot be checked now, the stream ends; an authorised reader reconnects.
        else if (await stillMay().catch(() => false)) write(': heartbeat\n\n');
        else end();
      }, HEARTBEAT_MS);
      onDisconnect(response, () => {
        clearInterval(beat);
        undo();
      });
    },
  };
}
