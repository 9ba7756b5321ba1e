/** Keeps or discards the tokens that were obtained in a consent, as the person decides. */
import { recordChange } from '../../audit/record-change.ts';
import { announceConsent, changeOfConsent, changeOfWaiting } from '../../people/consents.ts';
import { beginAfterConsent, type SessionCookie, sessionsOf } from '../../people/sessions.ts';
import { deleteObtainedTokens, findObtainedTokens } from '../../store/obtained-tokens.ts';
import { movePersonTokens } from '../../store/people.ts';
import { completeConsent, findPersonConsent } from '../../store/person-consents.ts';
import type { PersonConsentTable } from '../../store/tables/people.ts';
import { ChangeRefused } from '../refused.ts';
import {
  type Consenting,
  checkBrowser,
  givenIn,
  isBrowserOf,
  loadForPeople,
  needsOwner,
  over,
} from './person-consent.ts';
import { endKept, revokePersonTokens, revokeReplaced } from './person-tokens.ts';

/** Deletes the tokens at the request of the browser that obtained them, and revokes them at the platform. @throws ChangeRefused */
export async function discardByPerson(
  services: Consenting,
  consent: PersonConsentTable,
  browserHash: string,
): Promise<void> {
  checkBrowser(consent, browserHash);
  const { organisation_id: organisationId, id } = consent;
  await revokePersonTokens(
    services,
    await deleteObtainedTokens(services.broker.store.db, organisationId, id, { by: browserHash }),
  );
}

/**
 * Keeps the tokens at the request of the browser that obtained them, and completes the consent. For a person whom only a source asserts, an owner has
 * to confirm them before their first use. From then on the browser with this cookie can show them to the person. A repeated request of that browser
 * (a double click, or a lost answer) gets the first answer again, as long as the tokens still exist.
 *
 * @returns `confirms`: an owner has to confirm. `shows`: the browser has a session with this cookie
 * @throws ChangeRefused, or AuditUnavailable: then nothing is kept
 */
export async function keep(
  services: Consenting,
  consent: PersonConsentTable,
  browserHash: string,
  by: { correlationId: string; cookie: SessionCookie },
): Promise<Kept> {
  const again = () => keptBefore(services.broker, consent, browserHash, by.cookie);
  if (consent.status === 'completed') return (await again()) ?? keepNow(services, consent, browserHash, by);
  try {
    return await keepNow(services, consent, browserHash, by);
  } catch (error) {
    if (!(error instanceof ChangeRefused)) throw error;
    const kept = await again();
    if (!kept) throw error;
    return kept;
  }
}

type Kept = { confirms: boolean; shows: boolean };

/** Returns the result of an earlier request of this browser; undefined when there was none, or the tokens do not exist any more. */
async function keptBefore(
  broker: Consenting['broker'],
  { token_hash: tokenHash }: PersonConsentTable,
  browserHash: string,
  cookie: SessionCookie,
): Promise<Kept | undefined> {
  const consent = await findPersonConsent(broker.store.db, tokenHash);
  if (consent?.status !== 'completed' || !isBrowserOf(consent, browserHash)) return undefined;
  const given = await givenIn(broker, consent);
  // A session that the person left, or that has expired, is not started again.
  return (
    given && {
      confirms: given.standing === 'unconfirmed',
      shows: (await sessionsOf(broker, cookie.hash)).length > 0,
    }
  );
}

async function keepNow(
  services: Consenting,
  consent: PersonConsentTable,
  browserHash: string,
  { correlationId, cookie }: { correlationId: string; cookie: SessionCookie },
): Promise<Kept> {
  const { broker, changes } = services;
  checkBrowser(consent, browserHash);
  const { manifest } = await loadForPeople(broker, consent);
  const {
    organisation_id: organisationId,
    person_id: personId,
    platform_id: platform,
    connection_id: connection,
  } = consent;
  const confirms = needsOwner(consent, manifest);
  const by = { owner: { id: personId, organisation_id: organisationId }, how: 'person', correlationId } as const;
  const change = { reason: 'person_connected', platform, connection };
  const replaced = await recordChange(services, by, change, async (tx, note) => {
    note({ person_id: personId, verified: consent.verified === 1, named_by: consent.named_by, confirmed: !confirms });
    if (!(await completeConsent(tx, consent.id, broker.clock()))) throw over();
    const obtained = await findObtainedTokens(tx, organisationId, consent.id, browserHash);
    if (!obtained) throw over();
    const before = confirms ? [] : await endKept(tx, obtained);
    const place = { organisationId, id: obtained.id };
    if (!(await movePersonTokens(tx, place, 'obtained', confirms ? 'unconfirmed' : 'kept'))) throw over();
    await beginAfterConsent(broker, tx, consent, cookie);
    await announceConsent(changes, tx, consent);
    if (confirms) await changes.announce(tx, changeOfWaiting(obtained));
    return { before, obtained };
  });
  changes.tell(changeOfConsent(consent));
  if (confirms) changes.tell(changeOfWaiting(replaced.obtained));
  await revokeReplaced(services, replaced.obtained, replaced.before);
  return { confirms, shows: true };
}
