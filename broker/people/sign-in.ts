/** A person signs in at the issuer of their assertion before they consent, so that whoever completes is who is meant. */
import { asProvider } from '../auth/issuer-keys.ts';
import type { ProviderSteps } from '../auth/provider-types.ts';
import type { Broker } from '../broker.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { subjectOf } from './assertions.ts';
import type { CallerIssuer } from './caller-issuer.ts';
import type { Identity } from './person-hash.ts';

/** Where the issuer sends the browser back to: register it there as a redirect URI of the broker's client. */
export const SIGNED_IN_PATH = '/me/consent/signed-in';

/** What is kept until the callback. */
export type SignInState = { state: string; nonce: string; verifier: string };

/** `detail`: for the person. */
export type NotIdentified = { problem: string };

export type SignIns = {
  begin(issuer: CallerIssuer): Promise<{ url: string; kept: SignInState } | NotIdentified>;
  finish(issuer: CallerIssuer, query: URLSearchParams, kept: SignInState): Promise<Identity | NotIdentified>;
};

const KEPT = 100;

/** Makes it. The libraries are loaded with the first sign-in. */
export function personSignIns(broker: Pick<Broker, 'baseUrl' | 'clock' | 'log' | 'outbound'>): SignIns {
  const made = recentlyUsed<Promise<ProviderSteps>>(KEPT);
  const stepsOf = (issuer: CallerIssuer): Promise<ProviderSteps> => {
    const key = JSON.stringify([issuer.issuer, issuer.client_id ?? null]);
    const found = made.get(key);
    if (found) return found;
    const steps = import('../auth/provider-steps.ts').then(({ providerSteps }) =>
      providerSteps(broker, asProvider(issuer), broker.outbound, broker.baseUrl + SIGNED_IN_PATH),
    );
    made.set(key, steps);
    return steps;
  };
  return {
    begin: async (issuer) => {
      if (issuer.client_id === undefined)
        return {
          problem: `Nobody can sign in at ${new URL(issuer.issuer).host} from here: an owner has to give its client_id in caller_issuers first.`,
        };
      const begun = await (await stepsOf(issuer)).begin({ page: '', organisation: null, replaces: null });
      if ('problem' in begun) return { problem: begun.detail };
      const { state, nonce, verifier } = begun.flow;
      return { url: begun.url, kept: { state, nonce, verifier } };
    },
    finish: async (issuer, query, kept) => {
      const flow = { ...kept, page: '', organisation: null, replaces: null };
      const signedIn = await (await stepsOf(issuer)).finish(query, flow);
      if ('problem' in signedIn) return { problem: signedIn.detail };
      const subject = subjectOf(issuer, signedIn.claims);
      if (subject === undefined) return { problem: `${new URL(issuer.issuer).host} does not say who you are.` };
      return { issuer: issuer.issuer, subject };
    },
  };
}
