import type { Broker } from '../broker.ts';
import { placementOf } from '../egress/credential-placement.ts';
import { buildRequest, type RestPlatform } from '../egress/rest.ts';
import type { ConnectionFacts } from '../facts/facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { JsonObject } from '../policy/facts.ts';
import { type Call, familyOf } from './call.ts';
import type { Credential } from './credentials.ts';
import { forwardStream } from './forward-stream.ts';
import type { Forwarded } from './forwarded.ts';

/** How a platform's manifest says that a request is written. */
export function restPlatform(manifest: Manifest): RestPlatform {
  return {
    baseUrl: manifest.base_url,
    wholeAddress: manifest.kind !== 'rest',
    headers: manifest.headers,
    defaultHeaders: manifest.default_headers,
    forbiddenHeaders: manifest.forbidden_headers,
    auth: placementOf(manifest.auth),
    body: manifest.body,
  };
}

/** Sends the call once. Whatever comes back, the credential is not in it. */
export async function forward(
  broker: Broker,
  manifest: Manifest,
  call: Call,
  connection: ConnectionFacts,
  credential: Credential,
): Promise<Forwarded> {
  const built = buildRequest(
    restPlatform(manifest),
    {
      method: call.action.method,
      endpoint: { path: call.path, query: call.query },
      headers: call.headers,
      body: call.action.data as JsonObject | undefined,
    },
    credential.secret,
  );
  if (!built.ok) return { kind: 'refused_locally', error: built.error, detail: built.detail };
  const family = familyOf(call.who);
  const { taker } = call;
  if (taker !== undefined)
    return await forwardStream(
      { outbound: broker.outbound, call, taker, credential },
      { ...built.request, connectionKey: connection.id },
    );
  const answer = await broker.outbound.send({
    ...built.request,
    connectionKey: connection.id,
    family,
    lease: call.lease,
  });
  if (answer.kind === 'unreachable')
    return { kind: 'unreachable', code: answer.code, detail: answer.detail, sent: answer.sent };
  const read = await broker.outbound.read(answer, credential.patterns, family);
  return { kind: 'answer', status: answer.status, read };
}
