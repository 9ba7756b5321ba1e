/** A person says whether what was obtained in a consent is to be kept. */
import { recordChange } from '../audit/record-change.ts';
import { announceConsent, changeOfConsent, changeOfWaiting } from '../people/consents.ts';
import { beginAfterConsent, type SessionCookie } from '../people/sessions.ts';
import { deleteObtainedTokens, findObtainedTokens } from '../store/obtained-tokens.ts';
import { movePersonTokens } from '../store/people.ts';
import { completeConsent } from '../store/person-consents.ts';
import type { PersonConsentTable } from '../store/tables/people.ts';
import { type Consenting, checkBrowser, loadForPeople, needsOwner, over } from './person-consent.ts';
import { endKept, revokePersonTokens, revokeReplaced } from './person-tokens.ts';

/** Forgets what was obtained, as the browser asks that obtained it, and revokes it at the platform. @throws ChangeRefused */
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
 * Keeps what was obtained, as the person says in the browser that obtained it, and completes the consent. Of a person whom only a
 * source asserts an owner confirms it before its first use. From then on the browser with this cookie shows it to the person.
 *
 * @throws ChangeRefused; AuditUnavailable, and then nothing is kept
 */
export async function keep(
  services: Consenting,
  consent: PersonConsentTable,
  browserHash: string,
  { correlationId, cookie }: { correlationId: string; cookie: SessionCookie },
): Promise<{ confirms: boolean }> {
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
  return { confirms };
}
