/** The exact request of a held call, for display to the deciding person. */

import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Uses } from '../broker.ts';
import { isTextType } from '../egress/answers/answer.ts';
import type { Compiled } from '../facts/compiled.ts';
import { parseEndpoint } from '../policy/endpoint.ts';
import type { CallAsk, JsonObject, JsonValue } from '../policy/facts.ts';
import { namedRecipients } from '../policy/recipients.ts';
import { findPlatform } from '../store/governed-versions.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { type HeldPerson, shownPerson } from './held-person.ts';
import { actionOf, callerOf, rawOf } from './held-request.ts';

export type ShownRequest = {
  method: string;
  /** Includes the query string. */
  endpoint: string;
  body: JsonValue;
  /** A body that is not text. */
  upload: ShownUpload | null;
  /** The agent's headers that are sent, none of which contains a credential, and the headers that give the body's type and encoding. */
  headers: Readonly<Record<string, string>>;
  /** Recipients in the body, found by the platform's current manifest. */
  recipients: string[];
  /** The person for whom the call is made; null: for nobody in particular. */
  caller: HeldPerson | null;
};

/** Builds the request for display. `request`: the opened value; untrusted input of the agent. */
export async function shownRequest(
  services: Uses<'store'> & { compiled: Compiled },
  held: HeldCall,
  request: JsonObject,
): Promise<ShownRequest> {
  const action = actionOf(request);
  return {
    method: action.method,
    endpoint: action.endpoint,
    ...shownBody(request),
    headers: { ...action.headers, ...rawOf(request)?.bodyHeaders },
    recipients: await recipientsOf(services, held, request),
    caller: shownPerson(callerOf(request)),
  };
}

async function recipientsOf(
  { broker, compiled }: Uses<'store'> & { compiled: Compiled },
  held: HeldCall,
  request: JsonObject,
): Promise<string[]> {
  const { organisation_id, platform_id } = held;
  const platform = await findPlatform(broker.store.db, organisation_id, platform_id);
  if (!platform) return [];
  const { rules } = await compiled.platform(organisation_id, platform_id, platform.version);
  const action = actionOf(request);
  const endpoint = parseEndpoint(action.endpoint, { allowEncodedSlash: true });
  if (!endpoint.ok) return [];
  const call: CallAsk = {
    method: action.method,
    path: endpoint.path,
    query: endpoint.query,
    headers: action.headers ?? {},
    body: action.data as JsonObject | undefined,
  };
  return namedRecipients(rules, call);
}

/** A body that cannot be displayed: its length, its hash, and the type that the agent declares. */
type ShownUpload = { media_type: string | null; bytes: number; sha256: string };

type ShownBody = { body: JsonValue; upload: ShownUpload | null };

/** Returns the body as the deciding person is shown it: the readable content, or a description of it. `request`: the opened request. */
function shownBody(request: JsonObject): ShownBody {
  const { data, encoding, headers = {} } = actionOf(request);
  if (encoding !== undefined && typeof data === 'string')
    return { body: null, upload: uploadOf(Buffer.from(data, 'base64'), headers['content-type']) };
  const raw = data === undefined ? rawOf(request) : undefined;
  if (raw?.bytes === undefined) return { body: request.data ?? null, upload: null };
  const { 'content-type': type, 'content-encoding': coding } = raw.bodyHeaders;
  const isPlain = coding === undefined && isTextType(type) && isUtf8(raw.bytes);
  return isPlain ? { body: raw.bytes.toString(), upload: null } : { body: null, upload: uploadOf(raw.bytes, type) };
}

const uploadOf = (bytes: Buffer, type: string | undefined): ShownUpload => ({
  media_type: type ?? null,
  bytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});
