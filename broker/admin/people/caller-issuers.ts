/** The issuers whose assertions about people an organisation trusts. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import type { CallerIssuer } from '../../people/caller-issuer.ts';
import { notedIssuers, readOrganisation, writeSettings } from '../organisations/organisation.ts';
import { ChangeRefused } from '../refused.ts';

const MAX = 50;

type Trusting = Changing & Uses<'vault'>;

/** Trusts an issuer, or changes the terms of its trust. Returns all issuers. @throws ChangeRefused, or AuditUnavailable: then nothing is changed */
export const trustIssuer = (services: Trusting, by: ChangingOwner, issuer: CallerIssuer): Promise<CallerIssuer[]> =>
  changeIssuers(services, by, (before) => {
    const others = before.filter((one) => one.issuer !== issuer.issuer);
    if (others.length >= MAX)
      throw new ChangeRefused(
        'conflict',
        `The organisation already trusts ${MAX} issuers, the maximum. Remove one first.`,
      );
    return [...others, issuer];
  });

/** Removes the trust in an issuer: its assertions are refused from the next call. Returns the remaining issuers. @throws as trustIssuer */
export const distrustIssuer = (services: Trusting, by: ChangingOwner, issuer: string): Promise<CallerIssuer[]> =>
  changeIssuers(services, by, (before) => {
    const others = before.filter((one) => one.issuer !== issuer);
    if (others.length === before.length)
      throw new ChangeRefused(
        'conflict',
        'The organisation does not trust this issuer. Write it exactly as it is listed.',
      );
    return others;
  });

async function changeIssuers(
  services: Trusting,
  by: ChangingOwner,
  change: (before: CallerIssuer[]) => CallerIssuer[],
): Promise<CallerIssuer[]> {
  const { organisation_id: organisationId } = by.owner;
  return await recordInTurn(services, by, { reason: 'organisation_changed' }, async (tx, note) => {
    const { caller_issuers: before } = await readOrganisation(tx, organisationId);
    const after = change(before);
    note(notedIssuers(before, after));
    await writeSettings(tx, services.broker.vault, organisationId, { caller_issuers: after });
    return after;
  });
}
