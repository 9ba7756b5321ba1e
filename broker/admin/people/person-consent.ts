/**
 * The steps of a person's consent in a browser: sign in at the issuer of the assertion, consent at the platform, and confirm that the tokens are to
 * be kept. State is bound to the consent and to the browser, and the person who completes it has to be the expected one.
 */

import { z } from 'zod';
import type { Uses } from '../../broker.ts';
import { sha256Hex } from '../../crypto/canonical.ts';
import { readFacts } from '../../oauth-client/facts.ts';
import { isProblem } from '../../oauth-client/problem.ts';
import { StoredFlow } from '../../oauth-client/stored-flow.ts';
import { scopesWanted } from '../../oauth-client/wanted-scopes.ts';
import type { People } from '../../people/people.ts';
import { SignInState, type SignIns } from '../../people/sign-in.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { findAgent } from '../../store/agents.ts';
import { deleteObtainedTokens, findObtainedTokens } from '../../store/obtained-tokens.ts';
import { findOrganisation } from '../../store/organisations.ts';
import { listGivenTokens, listPersonTokens } from '../../store/people.ts';
import { findPersonConsent, putConsentFlow } from '../../store/person-consents.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { PersonConsentTable, PersonTokenTable } from '../../store/tables/people.ts';
import { inTransaction, RolledBack, rollback } from '../../store/transaction.ts';
import type { Connecting } from '../connections/connections.ts';
import { loadConnection } from '../connections/find-connection.ts';
import { ChangeRefused } from '../refused.ts';
import { revokePersonTokens } from './person-tokens.ts';

export type Consenting = Connecting & { people: People; signIns: SignIns };

/** The state of a redirect: where the browser was sent. */
export const Flow = z.discriminatedUnion('kind', [
  SignInState.extend({ kind: z.literal('sign_in') }),
  z.strictObject({ kind: z.literal('platform'), kept: StoredFlow }),
]);
export type Flow = z.infer<typeof Flow>;

export const over = () =>
  new ChangeRefused(
    'conflict',
    'This consent has expired, or was already given. Ask for a new link where you got this one.',
  );
const elsewhere = () =>
  new ChangeRefused(
    'conflict',
    'This consent was started in another browser, so nothing from this browser is stored. If you started it, continue there; if not, tell the person who sent you the link that somebody else has it.',
  );
const changed = () =>
  new ChangeRefused('conflict', 'The platform was changed meanwhile. Ask for a new link where you got this one.');

const withdrawn = () =>
  new ChangeRefused(
    'conflict',
    'The agent that asked was revoked meanwhile, so there is nothing to consent to. Close this page.',
  );

/** What a page shows of a consent. `account`: present after the person consented at the platform, if that reports it. */
export type ConsentShown = {
  agent: string;
  organisation: string;
  platform: string;
  scopes: readonly string[];
  namedBy: string;
  verified: boolean;
  /** Whether an owner has to confirm it before its first use. */
  confirms: boolean;
  obtained: { account: string | null } | undefined;
};

/**
 * Returns what the page shows. `browserHash`: of the requesting browser; only the browser that obtained tokens sees the account. @throws
 * ChangeRefused
 */
export async function showConsent(
  { broker }: Pick<Consenting, 'broker'>,
  consent: PersonConsentTable,
  browserHash: string | undefined,
): Promise<ConsentShown> {
  const { db } = broker.store;
  const { organisation_id: organisationId } = consent;
  const { manifest } = await loadForPeople(broker, consent);
  const scopes = manifest.auth.type === 'oauth2' ? manifest.auth.scopes : undefined;
  const more = await scopesWantedOf(broker, consent);
  const agent = await findAgent(db, organisationId, consent.agent_id);
  const organisation = await findOrganisation(db, organisationId);
  const obtained =
    browserHash !== undefined &&
    isBrowserOf(consent, browserHash) &&
    (await findObtainedTokens(db, organisationId, consent.id, browserHash));
  return {
    agent: agent?.name ?? 'an agent that is no longer there',
    organisation: organisation?.name ?? '',
    platform: manifest.name ?? consent.platform_id,
    scopes: scopes ? [...new Set([...scopes, ...more])] : [],
    namedBy: consent.named_by,
    verified: consent.verified === 1,
    confirms: needsOwner(consent, manifest),
    obtained: obtained ? { account: readFacts(obtained.oauth)?.account ?? null } : undefined,
  };
}

/** Returns the tokens that were given in a consent, kept or waiting for an owner; undefined: they were replaced or ended since, or there are none. */
export async function givenIn(
  { store }: Pick<Consenting['broker'], 'store'>,
  { organisation_id: organisationId, person_id: personId, id }: PersonConsentTable,
): Promise<PersonTokenTable | undefined> {
  const given = await listGivenTokens(store.db, organisationId, { personId });
  return given.find(({ consent_id: consent }) => consent === id);
}

export const isBrowserOf = ({ browser_hash: hash }: PersonConsentTable, browserHash: string): boolean =>
  hash === browserHash;

/** Returns why a consent does not belong to this browser any more. */
export async function whyConsentEnded(
  { broker }: Pick<Consenting, 'broker'>,
  { token_hash: tokenHash }: PersonConsentTable,
  { browserHash, goesOn }: RedirectedBrowser,
): Promise<ChangeRefused> {
  const now = await findPersonConsent(broker.store.db, tokenHash);
  const hash = (now?.status === 'pending' ? now.browser_hash : null) ?? browserHash;
  return goesOn && hash !== browserHash ? elsewhere() : over();
}

/** @throws ChangeRefused unless the consent belongs to this browser */
export function checkBrowser(consent: PersonConsentTable, browserHash: string): void {
  if (consent.browser_hash === null || consent.status === 'completed') throw over();
  if (!isBrowserOf(consent, browserHash)) throw elsewhere();
}

export const needsOwner = ({ verified }: PersonConsentTable, { per_person: perPerson }: Manifest): boolean =>
  verified === 0 && perPerson?.asserted_consent !== 'link';

/** Loads the connection and its platform, if people can still give tokens for it, and the requesting agent still exists. @throws ChangeRefused */
export async function loadForPeople(
  { store }: Consenting['broker'],
  {
    organisation_id: organisationId,
    connection_id: id,
    platform_id: platformId,
    family_id: familyId,
  }: PersonConsentTable,
): Promise<{ connection: ConnectionTable; manifest: Manifest }> {
  // The end of the agent ends its pending consents. For a child its parent counts, which outlives it.
  const agent = await findAgent(store.db, organisationId, familyId);
  if (!agent || agent.status === 'revoked' || agent.status === 'deleted') throw withdrawn();
  const found = await loadConnection(store.db, organisationId, id);
  if (found.connection.platform_id !== platformId || !found.manifest.per_person?.enabled) throw changed();
  return found;
}

/** Returns where the browser goes: to the issuer of the assertion, to sign in, or else directly to the platform. @throws ChangeRefused */
export async function goOn(
  services: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  browserHash: string,
): Promise<string> {
  const { broker, people, signIns } = services;
  await loadForPeople(broker, consent);
  if (consent.verified === 0) return await toPlatform(services, consent, { browserHash, goesOn: false });
  const issuer = await people.assertions.issuer(consent.organisation_id, consent.named_by);
  if (!issuer) throw new ChangeRefused('conflict', `The organisation no longer trusts ${consent.named_by}.`);
  const begun = await signIns.begin({ organisationId: consent.organisation_id, issuer });
  if ('problem' in begun) throw new ChangeRefused('conflict', begun.problem);
  const { kept } = begun;
  const at = { browserHash, goesOn: false, stateHash: sha256Hex(kept.state) };
  await putFlow(services, consent, at, { kind: 'sign_in', ...kept });
  return begun.url;
}

/** The browser that is redirected. `goesOn`: it has begun the consent already, and may continue only if no other browser has begun it since. */
type RedirectedBrowser = { browserHash: string; goesOn: boolean };

/** Redirects to the platform, which asks the person. @throws ChangeRefused */
export async function toPlatform(
  services: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  by: RedirectedBrowser,
): Promise<string> {
  const { broker } = services;
  const { connection, manifest } = await loadForPeople(broker, consent);
  const begun = await services.oauth.authorize(connection, manifest, await scopesWantedOf(broker, consent));
  if (isProblem(begun)) throw new ChangeRefused('upstream_unreachable', begun.detail);
  const { kept, stateHash } = begun;
  await putFlow(services, consent, { ...by, stateHash }, { kind: 'platform', kept });
  return begun.url;
}

/** Returns the scopes that calls needed beyond what the person gave before. */
const scopesWantedOf = async ({ store }: Consenting['broker'], consent: PersonConsentTable): Promise<string[]> =>
  (await listPersonTokens(store.db, consent)).flatMap(scopesWanted);

export const flowPlace = ({ organisation_id: organisationId, id }: PersonConsentTable) =>
  ({ table: 'person_consents', column: 'flow', organisationId, rowId: id }) as const;

/** Discards what another browser obtained: otherwise whoever has the link could keep it for the person, or see it. */
async function putFlow(
  services: Consenting & Uses<'vault'>,
  consent: PersonConsentTable,
  at: RedirectedBrowser & { stateHash: string },
  flow: Flow,
): Promise<void> {
  const { broker } = services;
  const { organisation_id: organisationId, id } = consent;
  const sealed = broker.vault.seal(flowPlace(consent), JSON.stringify(flow));
  const ended = await inTransaction(broker.store.db, async (tx) => {
    if (!(await putConsentFlow(tx, id, { ...at, flow: sealed, now: broker.clock() }))) return rollback('over');
    return await deleteObtainedTokens(tx, organisationId, id, { notBy: at.browserHash });
  });
  if (ended instanceof RolledBack) throw await whyConsentEnded(services, consent, at);
  await revokePersonTokens(services, ended);
}
