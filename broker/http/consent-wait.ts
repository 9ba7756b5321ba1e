/** Waits for a person's decision on a consent. */
import { type Consent, changeOfConsent, consentStatusAt, findConsent } from '../people/consents.ts';
import type { Instant } from '../policy/facts.ts';
import { Refusal } from './errors.ts';
import { instant, json, type Reply } from './reply.ts';
import type { Context } from './route.ts';
import { waitForNews } from './waiting.ts';

type ConsentContext = Pick<Context, 'services' | 'request' | 'left'>;

/** Reads the current state of the consent with this token. @throws Refusal not_found */
export async function readConsent({ services: { broker } }: ConsentContext, token: string): Promise<Consent> {
  const consent = await findConsent(broker, token);
  if (!consent) throw new Refusal('not_found', 'There is no such consent.');
  return consent;
}

export const hasConsentEnded = (consent: Consent, now: Instant): boolean => consentStatusAt(consent, now) !== 'pending';

/** Returns the consent as soon as it is settled, or after `waitMs`. */
export async function settledConsent(context: ConsentContext, token: string, waitMs: number): Promise<Consent> {
  const read = () => readConsent(context, token);
  const found = await read();
  if (waitMs === 0 || hasConsentEnded(found, context.services.broker.clock())) return found;
  const changesAt = ({ expires_at }: Consent) => expires_at;
  const options = { waitMs, isSettled: hasConsentEnded, changesAt };
  return await waitForNews(context, changeOfConsent(found).id, read, options);
}

/** Builds the answer of `GET /v1/consent/caller/status/{token}`. It includes no data about the person. */
export const consentStatusReply = ({ services: { broker } }: ConsentContext, consent: Consent): Reply =>
  json(200, {
    status: consentStatusAt(consent, broker.clock()),
    platform_id: consent.platform_id,
    expires_at: instant(consent.expires_at),
  });
