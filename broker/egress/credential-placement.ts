/** Where a platform's credential goes in a request, and whether a secret can be sent there. */
import { INSTALLATION_ID } from '../platforms/auth.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { isParted, readSecretParts } from '../platforms/secret-parts.ts';
import { isHeaderValue } from './request-check.ts';
import type { AuthPlacement } from './rest.ts';

/** What is got with a consent, as an App, as a client or as a service account is an access token, which goes where bearers go. */
export function placementOf(auth: Manifest['auth']): AuthPlacement {
  switch (auth.type) {
    case 'bearer':
    case 'oauth2':
    case 'app':
    case 'client_credentials':
    case 'service_account':
      return { type: 'bearer' };
    case 'basic':
      return { type: 'basic' };
    case 'aws_sigv4':
    case 'hmac':
      return auth;
    case 'header':
      return { type: 'header', name: auth.name, prefix: auth.prefix };
    case 'query':
      return { type: 'query', name: auth.name };
  }
}

/**
 * Why a secret cannot be sent to a platform, as a phrase that follows "the secret" and reveals nothing of it: `ends with a
 * space`; undefined when it can. Basic and query credentials are encoded, so any well-formed text can be sent.
 */
export function whyUnsendable(auth: Manifest['auth'], secret: string): string | undefined {
  if (secret === '') return 'is empty';
  if (!secret.isWellFormed()) return 'is not well-formed text (it has a lone surrogate)';
  if (auth.type === 'app')
    return INSTALLATION_ID.test(secret) ? undefined : "is not the number of an App's installation, such as 12345678";
  if (isParted(auth)) {
    const read = readSecretParts(auth, secret);
    return read.ok ? undefined : read.problem;
  }
  const { type } = placementOf(auth);
  if (type === 'basic' || type === 'query') return undefined;
  if (isHeaderValue(secret)) return undefined;
  if (/[\r\n]/.test(secret.replace(/[\r\n]+$/, ''))) return 'has several lines, which no header can carry';
  if (/[\r\n]$/.test(secret)) return 'ends with a line break, which no header can carry';
  if (/^[ \t]/.test(secret)) return 'begins with a space, which no header can carry';
  if (/[ \t]$/.test(secret)) return 'ends with a space, which no header can carry';
  if (/[^\x00-\x7f]/.test(secret)) return 'contains non-ASCII characters, which no header can carry';
  return 'contains a control character, which no header can carry';
}
