/**
 * A software authenticator with its browser: it makes real WebAuthn attestations (`none`) and assertions, and every part of its response can be made
 * wrong. It shares no code with the verification.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { newRsaPair } from './rsa.ts';

export type Algorithm = 'ES256' | 'RS256' | 'Ed25519';

/** Deviations from a correct response of browser and authenticator. */
export type Ceremony = {
  origin?: string;
  rpId?: string;
  type?: string;
  challenge?: string;
  /** Any value, to test its validation. */
  crossOrigin?: unknown;
  topOrigin?: string;
  /** User present. */
  up?: boolean;
  /** User verified. */
  uv?: boolean;
  /** Backup eligible and backed up. */
  be?: boolean;
  bs?: boolean;
  /** Reported in place of the next value. */
  counter?: number;
  userHandle?: string;
  /** For a new credential: whether the browser reports it as discoverable; null: not reported. */
  rk?: boolean | null;
};

const COSE = { ES256: -7, RS256: -257, Ed25519: -8 } as const;

const b64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64url');
const sha256 = (data: Uint8Array | string): Buffer => createHash('sha256').update(data).digest();

type Cbor = number | string | Uint8Array | Map<number | string, Cbor>;

/** Encodes CBOR (RFC 8949), as far as authenticators use it. */
export function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Map)
    return Buffer.concat([head(5, value.size), ...[...value].flatMap(([key, member]) => [cbor(key), cbor(member)])]);
  return Buffer.concat([head(2, value.length), value]);
}

function head(major: number, size: number): Buffer {
  if (size < 24) return Buffer.of((major << 5) | size);
  if (size < 256) return Buffer.of((major << 5) | 24, size);
  return Buffer.of((major << 5) | 25, size >> 8, size & 0xff);
}

export class Authenticator {
  readonly algorithm: Algorithm;
  readonly credentialId: string;
  aaguid = Buffer.alloc(16, 7);
  transports: string[] | undefined = ['internal', 'hybrid'];
  /** Increases with each signature; always 0 when `synced`. */
  counter = 0;
  synced: boolean;
  /** The user handle it was created with. */
  userHandle: string | undefined;
  /** Authenticator data of the last created credential. */
  authData = Buffer.alloc(0);
  readonly origin: string;
  readonly rpId: string;
  readonly #publicKey: KeyObject;
  readonly #privateKey: KeyObject;

  /** `synced`: it may be copied to other devices and has no counter, like the passkeys of phones. */
  constructor(
    baseUrl: string,
    { algorithm = 'ES256', synced = false }: { algorithm?: Algorithm; synced?: boolean } = {},
  ) {
    this.algorithm = algorithm;
    this.synced = synced;
    this.origin = new URL(baseUrl).origin;
    this.rpId = new URL(baseUrl).hostname;
    this.credentialId = b64(randomBytes(20));
    const pair =
      algorithm === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : algorithm === 'RS256'
          ? newRsaPair()
          : generateKeyPairSync('ed25519');
    this.#publicKey = pair.publicKey;
    this.#privateKey = pair.privateKey;
  }

  /** Returns a RegistrationResponseJSON for these PublicKeyCredentialCreationOptionsJSON. */
  // biome-ignore lint/suspicious/noExplicitAny: the options are whatever the broker answered.
  create(options: any, how: Ceremony & { format?: string; statement?: Map<string, Cbor>; publicKey?: Buffer } = {}) {
    this.userHandle = options.user.id;
    const clientDataJSON = this.#clientData(options.challenge, { type: 'webauthn.create', ...how });
    const id = Buffer.from(this.credentialId, 'base64url');
    const attested = Buffer.concat([
      this.aaguid,
      Buffer.of(id.length >> 8, id.length & 0xff),
      id,
      how.publicKey ?? this.#cosePublicKey(),
    ]);
    const authData = Buffer.concat([this.#authData({ uv: true, ...how }, 0x40, this.counter), attested]);
    this.authData = authData;
    const attestationObject = cbor(
      new Map<string, Cbor>([
        ['fmt', how.format ?? 'none'],
        ['attStmt', how.statement ?? new Map()],
        ['authData', authData],
      ]),
    );
    return {
      id: this.credentialId,
      rawId: this.credentialId,
      type: 'public-key',
      authenticatorAttachment: 'platform',
      clientExtensionResults: how.rk === null ? {} : { credProps: { rk: how.rk ?? true } },
      response: {
        clientDataJSON: b64(clientDataJSON),
        attestationObject: b64(attestationObject),
        ...(this.transports && { transports: this.transports }),
      },
    };
  }

  /** Returns an AuthenticationResponseJSON for these PublicKeyCredentialRequestOptionsJSON. */
  get(options: { challenge: string }, how: Ceremony = {}) {
    if (!this.synced) this.counter++;
    const clientDataJSON = this.#clientData(options.challenge, { type: 'webauthn.get', ...how });
    const authenticatorData = this.#authData({ uv: true, ...how }, 0, how.counter ?? this.counter);
    const signature = this.sign(Buffer.concat([authenticatorData, sha256(clientDataJSON)]));
    const userHandle = how.userHandle ?? this.userHandle;
    return {
      id: this.credentialId,
      rawId: this.credentialId,
      type: 'public-key',
      authenticatorAttachment: 'platform',
      clientExtensionResults: {},
      response: {
        clientDataJSON: b64(clientDataJSON),
        authenticatorData: b64(authenticatorData),
        signature: b64(signature),
        ...(userHandle !== undefined && { userHandle }),
      },
    };
  }

  /** Signs with its private key. */
  sign(data: Uint8Array): Buffer {
    return sign(this.algorithm === 'Ed25519' ? null : 'sha256', data, this.#privateKey);
  }

  #clientData(challenge: string, how: Ceremony): string {
    return JSON.stringify({
      type: how.type,
      challenge: how.challenge ?? challenge,
      origin: how.origin ?? this.origin,
      crossOrigin: 'crossOrigin' in how ? how.crossOrigin : false,
      ...(how.topOrigin !== undefined && { topOrigin: how.topOrigin }),
    });
  }

  #authData({ rpId, up = true, uv, be, bs }: Ceremony, more: number, counter: number): Buffer {
    const flags =
      (up ? 0x01 : 0) | (uv ? 0x04 : 0) | ((be ?? this.synced) ? 0x08 : 0) | ((bs ?? this.synced) ? 0x10 : 0) | more;
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([sha256(rpId ?? this.rpId), Buffer.of(flags), count]);
  }

  /** RFC 9053: `{1: kty, 3: alg, …}`. */
  #cosePublicKey(): Buffer {
    const jwk = this.#publicKey.export({ format: 'jwk' });
    const bytes = (text: unknown) => Buffer.from(text as string, 'base64url');
    const alg = COSE[this.algorithm];
    const members: [number, Cbor][] =
      this.algorithm === 'ES256'
        ? [
            [1, 2],
            [3, alg],
            [-1, 1],
            [-2, bytes(jwk.x)],
            [-3, bytes(jwk.y)],
          ]
        : this.algorithm === 'RS256'
          ? [
              [1, 3],
              [3, alg],
              [-1, bytes(jwk.n)],
              [-2, bytes(jwk.e)],
            ]
          : [
              [1, 1],
              [3, alg],
              [-1, 6],
              [-2, bytes(jwk.x)],
            ];
    return cbor(new Map(members));
  }
}
