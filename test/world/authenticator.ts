/** A passkey authenticator made of software: Chromium's own (WebAuthn, section 11, User Agent Automation). */
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
  /** Puts in a credential, as an older copy of one, too: its `signCount` is what it says. */
  addCredential(credential: Credential): Promise<void>;
  removeCredential(credentialId: string): Promise<void>;
  /** Whether its user is recognised (by finger, face or PIN) from now on. */
  recognises(user: boolean): Promise<void>;
  /** Whether somebody touches it at once when it asks. */
  touched(atOnce: boolean): Promise<void>;
  remove(): Promise<void>;
};

/** Plugs one in. Unless told otherwise it is a phone's or laptop's own, and recognises its user. */
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
