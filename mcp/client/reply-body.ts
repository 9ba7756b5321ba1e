/** The body of a response as an object; empty when it is not one, as from a proxy. */
import { parseExactJson } from './exact-json.ts';
import type { BrokerReply } from './send.ts';

export function bodyOf(reply: BrokerReply): Record<string, unknown> {
  try {
    const body = reply.text === '' ? {} : parseExactJson(reply.text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
