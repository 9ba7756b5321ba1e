/** Handles callbacks of a person's browser in a consent: from the issuer of the assertion, or from the platform. */
import type { Uses } from '../../broker.ts';
import { sha256Hex } from '../../crypto/canonical.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { isProblem } from '../../oauth-client/problem.ts';
import { consentStatusAt } from '../../people/consents.ts';
import type { SignInAnswer } from '../../people/sign-in.ts';
import { deleteObtainedTokens } from '../../store/obtained-tokens.ts';
import { addPersonTokens, isPerson } from '../../store/people.ts';
import { findConsentOfState, holdConsent, useConsentFlow } from '../../store/person-consents.ts';
import type { PersonConsentTable } from '../../store/tables/people.ts';
import { inTransaction, RolledBack, rollback } from '../../store/transaction.ts';
import { revokeTokensAtServer } from '../connections/revoke-tokens-at-server.ts';
import { ChangeRefused } from '../refused.ts';
import {
  type Consenting,
  Flow,
  flowPlace,
  isBrowserOf,
  loadForPeople,
  over,
  toPlatform,
  whyConsentEnded,
} from './person-consent.ts';
import { revokeReplaced } from './person-tokens.ts';

/** A callback of this browser, with the consent and the flow that it belongs to. */
type Callback = { consent: PersonConsentTable; flow: Flow; browserHash: string };

/** Returns the consent that the state of a callback belongs to, ended or not, whichever browser came back; undefined: none. */
export async function consentOfState(
  { broker }: Pick<Consenting, 'broker'>,
  query: URLSearchParams,
): Promise<PersonConsentTable | undefined> {
  const [state, ...more] = query.getAll('state');
  if (state === undefined || more.length > 0) return undefined;
  return await findConsentOfState(broker.store.db, sha256Hex(state));
}

/**
 * Returns the consent that a callback belongs to; undefined when it belongs to no pending one, or comes from another browser than the one that was
 * sent.
 */
export async function consentOfCallback(
  services: Pick<Consenting, 'broker'> & Uses<'vault'>,
  query: URLSearchParams,
  browserHash: string | undefined,
): Promise<Callback | undefined> {
  const { broker } = services;
  const consent = browserHash === undefined ? undefined : await consentOfState(services, query);
  if (!consent || consentStatusAt(consent, broker.clock()) !== 'pending') return undefined;
  if (browserHash === undefined || consent.flow === null || !isBrowserOf(consent, browserHash)) return undefined;
  const flow = Flow.parse(JSON.parse(broker.vault.open(flowPlace(consent), consent.flow).toString('utf8')));
  return { consent, flow, browserHash };
}

/** Consumes the flow: a code that is sent twice makes a server revoke the tokens issued for it (RFC 6749 section 4.1.2). */
async function useFlow({ broker }: Consenting, { consent }: Callback): Promise<void> {
  if (consent.state_hash === null || !(await useConsentFlow(broker.store.db, consent.state_hash))) throw over();
}

/** Handles a sign-in at the issuer. Returns where the browser goes next, if the person is the expected one. @throws ChangeRefused */
export async function signedIn(
  services: Consenting & Uses<'vault'>,
  callback: Callback,
  answer: SignInAnswer,
): Promise<string> {
  const { broker, people, signIns } = services;
  const { consent, flow, browserHash } = callback;
  if (flow.kind !== 'sign_in') throw over();
  await useFlow(services, callback);
  const { organisation_id: organisationId, person_id: personId, named_by: namedBy } = consent;
  const issuer = await people.assertions.issuer(organisationId, namedBy);
  if (!issuer) throw new ChangeRefused('conflict', `The organisation no longer trusts ${namedBy}.`);
  const { kind: _kind, ...kept } = flow;
  const identity = await signIns.finish({ organisationId, issuer }, answer, kept);
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
  return await toPlatform(services, consent, { browserHash, goesOn: true });
}

/**
 * Handles the answer of the platform's authorization server: the tokens are stored until the person confirms that they are to be kept. If another
 * browser began the consent meanwhile, they are revoked there immediately.
 *
 * @throws ChangeRefused
 */
export async function authorised(
  services: Consenting & Uses<'baseUrl'>,
  callback: Callback,
  path: string,
  query: URLSearchParams,
): Promise<void> {
  const { broker, oauth } = services;
  const { consent, flow, browserHash } = callback;
  if (flow.kind !== 'platform' || flow.kept.redirectUri !== broker.baseUrl + path) throw over();
  await useFlow(services, callback);
  const { connection, manifest } = await loadForPeople(broker, consent);
  const { organisation_id: organisationId, person_id: personId } = consent;
  const id = uuidv4();
  const holder = { place: { table: 'person_tokens', organisationId, id }, by: personId } as const;
  const done = await oauth.obtain(connection, manifest, { kept: flow.kept, query }, holder);
  if (isProblem(done))
    throw new ChangeRefused(done.problem === 'declined' ? 'forbidden' : 'upstream_unreachable', done.detail);
  const { platform_id, connection_id, named_by, verified, agent_id } = consent;
  const about = { platform_id, connection_id, person_id: personId, named_by, verified, agent_id };
  const row = { organisation_id: organisationId, id, ...about, consent_id: consent.id, browser_hash: browserHash };
  const now = broker.clock();
  const replaced = await inTransaction(broker.store.db, async (tx) => {
    const held = await holdConsent(tx, consent.id, { browserHash, now });
    const before = await deleteObtainedTokens(tx, organisationId, consent.id);
    const obtained = { ...row, standing: 'obtained', status: 'active', created_at: now } as const;
    const added = await addPersonTokens(tx, obtained, done.tokens);
    return held ? { before, added } : rollback(added);
  });
  if (replaced instanceof RolledBack) {
    await revokeTokensAtServer(services, { connection, manifest }, [replaced.reason]);
    throw await whyConsentEnded(services, consent, { browserHash, goesOn: true });
  }
  await revokeReplaced(services, replaced.added, replaced.before);
}
