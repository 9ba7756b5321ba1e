/** The body of a reply as an object. What is none, as of a proxy in between, is empty. */
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
