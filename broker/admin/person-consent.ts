/**
 * A person goes through a consent in a browser: signs in where the assertion is from, consents at the platform, and says that the
 * tokens are to be kept. State is bound to the consent and to the browser, and who completes must be who is meant.
 */

import { z } from 'zod';
import type { Uses } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { readFacts } from '../oauth-client/facts.ts';
import { isProblem } from '../oauth-client/problem.ts';
import { StoredFlow } from '../oauth-client/stored-flow.ts';
import { scopesWanted } from '../oauth-client/wanted-scopes.ts';
import type { People } from '../people/people.ts';
import type { SignIns } from '../people/sign-in.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { findAgent } from '../store/agents.ts';
import { findOrganisation } from '../store/organisations.ts';
import { addPersonTokens, findObtainedTokens, isPerson, listPersonTokens } from '../store/people.ts';
import { findConsentOfState, putConsentFlow, useConsentFlow } from '../store/person-consents.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import type { PersonConsentTable } from '../store/tables/people.ts';
import type { Connecting } from './connections.ts';
import { loadConnection } from './find-connection.ts';
import { discard } from './person-tokens.ts';
import { ChangeRefused } from './refused.ts';

export type Consenting = Connecting & { people: People; signIns: SignIns };

const Flow = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('sign_in'), state: z.string(), nonce: z.string(), verifier: z.string() }),
  z.strictObject({ kind: z.literal('platform'), kept: StoredFlow }),
]);
type Flow = z.infer<typeof Flow>;

export const over = () =>
  new ChangeRefused(
    'conflict',
    'This consent is over, or was given already. Ask for a new link where you got this one.',
  );
const changed = () =>
  new ChangeRefused('conflict', 'The platform was changed meanwhile. Ask for a new link where you got this one.');

const withdrawn = () =>
  new ChangeRefused(
    'conflict',
    'The agent that asked was revoked meanwhile, so there is nothing to consent to. Close this page.',
  );

/** What a page tells of a consent. `account`: once the person has consented at the platform, as far as that says. */
export type ConsentShown = {
  agent: string;
  organisation: string;
  platform: string;
  scopes: readonly string[];
  namedBy: string;
  verified: boolean;
  /** Whether an owner looks at it before it is used. */
  confirms: boolean;
  obtained: { account: string | null } | undefined;
};

/** `browserHash`: of the browser that asks; only the one that went to the platform is told what came back. @throws ChangeRefused */
export async function showConsent(
  { broker }: Pick<Consenting, 'broker'>,
  consent: PersonConsentTable,
  browserHash: string | undefined,
): Promise<ConsentShown> {
  const { db } = broker.store;
  const { organisation_id: organisationId } = consent;
  const { manifest } = await loadForPeople(broker, consent);
  const agent = await findAgent(db, organisationId, consent.agent_id);
  const organisation = await findOrganisation(db, organisationId);
  const obtained = isBrowserOf(consent, browserHash) && (await findObtainedTokens(db, organisationId, consent.id));
  return {
    agent: agent?.name ?? 'an agent that is no longer there',
    organisation: organisation?.name ?? '',
    platform: manifest.name ?? consent.platform_id,
    scopes: manifest.auth.type === 'oauth2' ? (manifest.auth.scopes ?? []) : [],
    namedBy: consent.named_by,
    verified: consent.verified === 1,
    confirms: needsOwner(consent, manifest),
    obtained: obtained ? { account: readFacts(obtained.oauth)?.account ?? null } : undefined,
  };
}

export const isBrowserOf = ({ browser_hash: hash }: PersonConsentTable, browserHash: string | undefined): boolean =>
  hash !== null && hash === browserHash;

export const needsOwner = ({ verified }: PersonConsentTable, { per_person: perPerson }: Manifest): boolean =>
  verified === 0 && perPerson?.asserted_consent !== 'link';

/** The connection and its platform, as long as people can give tokens for it, and an agent is there that asks. @throws ChangeRefused */
export async function loadForPeople(
  { store }: Consenting['broker'],
  {
    organisation_id: organisationId,
    connection_id: id,
    platform_id: platformId,
    family_id: familyId,
  }: PersonConsentTable,
): Promise<{ connection: ConnectionTable; manifest: Manifest }> {
  // What a revoked agent waited for ends with it. Of a child its parent counts, which outlives it.
  const agent = await findAgent(store.db, organisationId, familyId);
  if (!agent || agent.status === 'revoked' || agent.status === 'deleted') throw withdrawn();
  const found = await loadConnection(store.db, organisationId, id);
  if (found.connection.platform_id !== platformId || !found.manifest.per_person?.enabled) throw changed();
  return found;
}

/** Where the browser goes: to the issuer of the assertion, to sign in, or else to the platform at once. @throws ChangeRefused */
export async function goOn(
  services: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  browserHash: string,
): Promise<string> {
  const { broker, people, signIns } = services;
  await loadForPeople(broker, consent);
  if (consent.verified === 0) return await toPlatform(services, consent, browserHash);
  const issuer = await people.assertions.issuer(consent.organisation_id, consent.named_by);
  if (!issuer) throw new ChangeRefused('conflict', `The organisation trusts ${consent.named_by} no more.`);
  const begun = await signIns.begin(issuer);
  if ('problem' in begun) throw new ChangeRefused('conflict', begun.problem);
  const { kept } = begun;
  await putFlow(services, consent, { browserHash, stateHash: sha256Hex(kept.state) }, { kind: 'sign_in', ...kept });
  return begun.url;
}

async function toPlatform(
  services: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  browserHash: string,
): Promise<string> {
  const { broker } = services;
  const { connection, manifest } = await loadForPeople(broker, consent);
  const { organisation_id: organisationId, platform_id: platformId, person_id: personId } = consent;
  const place = { organisationId, platformId, connectionId: connection.id, personId };
  const given = await listPersonTokens(broker.store.db, place);
  const begun = await services.oauth.authorize(connection, manifest, given.flatMap(scopesWanted));
  if (isProblem(begun)) throw new ChangeRefused('upstream_unreachable', begun.detail);
  const { kept, stateHash } = begun;
  await putFlow(services, consent, { browserHash, stateHash }, { kind: 'platform', kept });
  return begun.url;
}

const flowPlace = ({ organisation_id: organisationId, id }: PersonConsentTable) =>
  ({ table: 'person_consents', column: 'flow', organisationId, rowId: id }) as const;

async function putFlow(
  { broker }: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  hashes: { browserHash: string; stateHash: string },
  flow: Flow,
): Promise<void> {
  const sealed = broker.vault.seal(flowPlace(consent), JSON.stringify(flow));
  const put = await putConsentFlow(broker.store.db, consent.id, { ...hashes, flow: sealed, now: broker.clock() });
  if (!put) throw over();
}

/** A callback of this browser, with the consent and the flow that it belongs to. */
type Callback = { consent: PersonConsentTable; flow: Flow; browserHash: string };

/**
 * The consent that a callback belongs to; undefined: it belongs to none that waits. In another browser than the one that was sent it
 * belongs to none, either.
 */
export async function consentOfCallback(
  { broker }: Pick<Consenting, 'broker'> & Uses<'vault'>,
  query: URLSearchParams,
  browserHash: string | undefined,
): Promise<Callback | undefined> {
  const [state, ...more] = query.getAll('state');
  if (state === undefined || more.length > 0 || browserHash === undefined) return undefined;
  const consent = await findConsentOfState(broker.store.db, sha256Hex(state), broker.clock());
  if (!consent || consent.flow === null || !isBrowserOf(consent, browserHash)) return undefined;
  const flow = Flow.parse(JSON.parse(broker.vault.open(flowPlace(consent), consent.flow).toString('utf8')));
  return { consent, flow, browserHash };
}

/** Once: a code that is sent twice makes a server revoke what it gave for it (RFC 6749 section 4.1.2). */
async function useFlow({ broker }: Consenting, { consent }: Callback): Promise<void> {
  if (consent.state_hash === null || !(await useConsentFlow(broker.store.db, consent.state_hash))) throw over();
}

/** The issuer has signed somebody in. Answers where the browser goes next, if it is who is meant. @throws ChangeRefused */
export async function signedIn(
  services: Consenting & Uses<'vault'>,
  callback: Callback,
  query: URLSearchParams,
): Promise<string> {
  const { broker, people, signIns } = services;
  const { consent, flow, browserHash } = callback;
  if (flow.kind !== 'sign_in') throw over();
  await useFlow(services, callback);
  const { organisation_id: organisationId, person_id: personId, named_by: namedBy } = consent;
  const issuer = await people.assertions.issuer(organisationId, namedBy);
  if (!issuer) throw new ChangeRefused('conflict', `The organisation trusts ${namedBy} no more.`);
  const { kind: _kind, ...kept } = flow;
  const identity = await signIns.finish(issuer, query, kept);
  if ('problem' in identity) throw new ChangeRefused('forbidden', identity.problem);
  const hash = await people.hasher.hash(organisationId, identity);
  if (!(await isPerson(broker.store.db, organisationId, personId, hash))) {
    broker.log.warn(
      { security: true, organisation: organisationId, consent: consent.id },
      'somebody else than the person whom a consent is for signed in',
    );
    throw new ChangeRefused(
      'forbidden',
      `This consent is for somebody else than whom ${new URL(namedBy).host} signed in. If it is meant for you, sign in there as yourself and open the link again; otherwise close this page.`,
    );
  }
  return await toPlatform(services, consent, browserHash);
}

/** The platform's authorization server has answered: what it gives waits until the person says that it is to be kept. @throws ChangeRefused */
export async function authorised(
  services: Consenting & Uses<'baseUrl'>,
  callback: Callback,
  path: string,
  query: URLSearchParams,
): Promise<void> {
  const { broker, oauth } = services;
  const { consent, flow } = callback;
  if (flow.kind !== 'platform' || flow.kept.redirectUri !== broker.baseUrl + path) throw over();
  await useFlow(services, callback);
  const { connection, manifest } = await loadForPeople(broker, consent);
  const { organisation_id: organisationId, person_id: personId } = consent;
  const id = uuidv4();
  const holder = { place: { table: 'person_tokens', organisationId, id }, by: personId } as const;
  const done = await oauth.obtain(connection, manifest, { kept: flow.kept, query }, holder);
  if (isProblem(done))
    throw new ChangeRefused(done.problem === 'declined' ? 'forbidden' : 'upstream_unreachable', done.detail);
  await discard(services, consent);
  const { platform_id, connection_id, named_by, verified, agent_id } = consent;
  const about = { platform_id, connection_id, person_id: personId, named_by, verified, agent_id };
  const row = { organisation_id: organisationId, id, ...about, consent_id: consent.id };
  await addPersonTokens(
    broker.store.db,
    { ...row, standing: 'obtained', status: 'active', created_at: broker.clock() },
    done.tokens,
  );
}
