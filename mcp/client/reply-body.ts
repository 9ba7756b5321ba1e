/** Returns the body of a response as an object; empty when the body is not one, as in a response of a proxy. */
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
