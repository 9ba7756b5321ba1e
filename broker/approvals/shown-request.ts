/** The exact request of a held call, for display to the deciding person. */
import type { Uses } from '../broker.ts';
import type { Compiled } from '../facts/compiled.ts';
import { parseEndpoint } from '../policy/endpoint.ts';
import type { CallAsk, JsonObject, JsonValue } from '../policy/facts.ts';
import { namedRecipients } from '../policy/recipients.ts';
import { findPlatform } from '../store/governed-versions.ts';
import type { HeldCall } from '../store/held-calls.ts';
import { type HeldPerson, shownPerson } from './held-person.ts';
import { actionOf, callerOf, rawOf } from './held-request.ts';
import { type ShownUpload, shownBody } from './shown-body.ts';

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
