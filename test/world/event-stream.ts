/** A reader of Server-Sent Events (HTML, section 9.2.6), as far as the broker uses them. */
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { vi } from 'vitest';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
export type StreamEvent = { event: string; data: any; at: number };

export type EventReader = {
  status: number;
  headers: IncomingMessage['headers'];
  /** The body of an answer that is not a stream. */
  body: string;
  events: StreamEvent[];
  comments: string[];
  ended(): boolean;
  /** Waits until the predicate holds for what was received, 20 s at most. */
  until(is: (reader: EventReader) => boolean): Promise<void>;
  close(): void;
};

/** Opens a stream. `from`: another loopback address, which stands in for another machine. */
export async function readEvents(
  url: string,
  headers: Record<string, string> = {},
  from?: string,
): Promise<EventReader> {
  let request: ClientRequest;
  const response = await new Promise<IncomingMessage>((answered, failed) => {
    const target = from === undefined ? url : url.replace('//localhost:', '//127.0.0.1:');
    request = get(target, { headers, agent: false, ...(from !== undefined && { localAddress: from }) }, answered);
    request.once('error', failed);
  });
  let over = false;
  const reader: EventReader = {
    status: response.statusCode!,
    headers: response.headers,
    body: '',
    events: [],
    comments: [],
    ended: () => over,
    until: (is) => vi.waitUntil(() => is(reader), { timeout: 20_000, interval: 20 }).then(() => {}),
    close: () => request.destroy(),
  };
  if (!response.headers['content-type']?.startsWith('text/event-stream')) {
    reader.body = await text(response);
    return reader;
  }
  for (const sign of ['close', 'error']) response.once(sign, () => (over = true));
  request!.on('error', () => {});
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    rest += chunk;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      take(reader, rest.slice(0, end));
      rest = rest.slice(end + 2);
    }
  });
  return reader;
}

function take(reader: EventReader, block: string): void {
  if (block.startsWith(':')) reader.comments.push(block.slice(1).trim());
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
  const event = field('event');
  if (event !== undefined) reader.events.push({ event, data: JSON.parse(field('data')!), at: performance.now() });
}
