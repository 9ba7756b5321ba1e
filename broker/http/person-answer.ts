/** Shared by the routes of people's pages. */

import { errorReply } from './envelope.ts';
import { asRefusal } from './errors.ts';
import { noConsentPage } from './pages/person-pages.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

export type PersonAsks = Context<'none', undefined>;

export const PERSON_ROUTE = {
  auth: 'none',
  limit: { name: 'person-consents', perMinute: 60, per: 'address' },
  errors: [
    'invalid_request',
    'forbidden',
    'not_found',
    'conflict',
    'rate_limited',
    'upstream_unreachable',
    'audit_unavailable',
  ],
} as const;

export const pageAnswer = (description: string) => ({ 200: { description, type: 'text/html' } });

/** Refusals after which the consent is still pending. */
const MAY_BEGIN_AGAIN: ReadonlySet<string> = new Set(['invalid_request', 'forbidden', 'upstream_unreachable']);

/**
 * Shows a person in a browser why something failed; a program gets the envelope. `again`: the consent's page in this browser, linked where the
 * consent can be continued or started again: the person declined, a server failed, or the page was reloaded.
 */
export async function answeringPerson(context: PersonAsks, step: () => Promise<Reply>, again?: string): Promise<Reply> {
  try {
    return await step();
  } catch (error) {
    const refusal = asRefusal(error);
    if (!refusal) throw error;
    if (context.request.headers.accept?.includes('text/html'))
      return noConsentPage(refusal, context.correlationId, MAY_BEGIN_AGAIN.has(refusal.code) ? again : undefined);
    return errorReply(refusal, context);
  }
}
