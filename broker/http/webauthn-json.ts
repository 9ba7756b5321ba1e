/** Schemas of authenticators' responses (WebAuthn sections 5.1.5 and 5.1.6), and of a device's name. */
import { z } from 'zod';
import { text } from '../wire/action.ts';

/** Size limit of a body with an authenticator's response. */
export const MAX_PASSKEY_BODY_BYTES = 64 * 1024;

const base64url = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be in base64url, without padding');

/** At most 1023 bytes (WebAuthn section 5.8.3). */
const CredentialId = base64url(1364);
const Large = base64url(32 * 1024);

const credential = {
  id: CredentialId,
  rawId: CredentialId,
  type: z.literal('public-key'),
};

const discoverable = (rk: boolean | undefined) => (rk === undefined ? {} : { credProps: { rk } });

/** Unknown members are allowed: browsers extend this form. */
export const RegistrationResponse = z
  .looseObject({
    ...credential,
    clientExtensionResults: z
      .looseObject({ credProps: z.looseObject({ rk: z.boolean().optional() }).optional() })
      .optional(),
    response: z.looseObject({
      clientDataJSON: Large,
      attestationObject: Large,
      // Stored as received, to be returned to the browser, which may know more values than we do.
      transports: z
        .array(z.string().regex(/^[a-z-]{1,32}$/, 'must be a transport'))
        .max(16)
        .optional(),
    }),
  })
  .transform(
    ({ id, rawId, type, clientExtensionResults, response: { clientDataJSON, attestationObject, transports } }) => ({
      id,
      rawId,
      type,
      clientExtensionResults: discoverable(clientExtensionResults?.credProps?.rk),
      response: { clientDataJSON, attestationObject, ...(transports && { transports }) },
    }),
  );

export const AuthenticationResponse = z
  .looseObject({
    ...credential,
    response: z.looseObject({
      clientDataJSON: Large,
      authenticatorData: Large,
      signature: Large,
      userHandle: base64url(128).nullish(),
    }),
  })
  .transform(({ id, rawId, type, response: { clientDataJSON, authenticatorData, signature, userHandle } }) => ({
    id,
    rawId,
    type,
    clientExtensionResults: {},
    response: { clientDataJSON, authenticatorData, signature, ...(userHandle && { userHandle }) },
  }));

/** Shown to people beside their other passkeys, so characters that move or hide the rest of a line are refused. */
export const DeviceName = text(64)
  .min(1)
  .regex(/\S/u, 'must not be blank')
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must not contain control or direction characters')
  .describe('what the owner calls the authenticator');

const Descriptor = z.object({
  id: CredentialId,
  type: z.literal('public-key'),
  transports: z.array(z.string()).optional(),
});
const UserVerification = z.enum(['required', 'preferred', 'discouraged']);

/** PublicKeyCredentialCreationOptionsJSON (WebAuthn section 5.1.9). Further members are allowed. */
export const CreationOptions = z
  .looseObject({
    challenge: Large,
    rp: z.object({ id: z.string(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    pubKeyCredParams: z.array(z.object({ alg: z.int(), type: z.literal('public-key') })),
    authenticatorSelection: z.looseObject({ userVerification: UserVerification, residentKey: z.string() }),
    timeout: z.int(),
    attestation: z.string(),
    excludeCredentials: z.array(Descriptor).optional(),
  })
  .meta({ id: 'PublicKeyCredentialCreationOptions' });

/** PublicKeyCredentialRequestOptionsJSON (WebAuthn section 5.1.10). Further members are allowed. */
export const RequestOptions = z
  .looseObject({
    challenge: Large,
    rpId: z.string(),
    allowCredentials: z.array(Descriptor),
    userVerification: UserVerification,
    timeout: z.int(),
  })
  .meta({ id: 'PublicKeyCredentialRequestOptions' });
