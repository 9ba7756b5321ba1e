/** A virtual passkey authenticator of Chromium (WebAuthn, section 11, User Agent Automation). */
import type { Devtools } from './devtools.ts';

export type Credential = {
  credentialId: string;
  rpId?: string;
  privateKey: string;
  userHandle?: string;
  signCount: number;
  isResidentCredential: boolean;
};

export type Authenticator = {
  credentials(): Promise<Credential[]>;
  /** Adds a credential, for example an older copy of one: its `signCount` is used as given. */
  addCredential(credential: Credential): Promise<void>;
  removeCredential(credentialId: string): Promise<void>;
  /** Sets whether user verification (finger, face or PIN) succeeds. */
  recognises(user: boolean): Promise<void>;
  /** Sets whether a prompt is confirmed immediately. */
  touched(atOnce: boolean): Promise<void>;
  remove(): Promise<void>;
};

/** Adds an authenticator to the page. By default a platform authenticator that verifies its user. */
export async function plugIn(page: Devtools, options: object = {}): Promise<Authenticator> {
  await page.command('WebAuthn.enable');
  const { authenticatorId } = await page.command('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
      ...options,
    },
  });
  const tell = (what: string, params: object = {}) =>
    page.command(`WebAuthn.${what}`, { authenticatorId, ...params }).then(() => {});
  return {
    credentials: async () => (await page.command('WebAuthn.getCredentials', { authenticatorId })).credentials,
    addCredential: (credential) => tell('addCredential', { credential }),
    removeCredential: (credentialId) => tell('removeCredential', { credentialId }),
    recognises: (user) => tell('setUserVerified', { isUserVerified: user }),
    touched: (atOnce) => tell('setAutomaticPresenceSimulation', { enabled: atOnce }),
    remove: () => tell('removeVirtualAuthenticator'),
  };
}
