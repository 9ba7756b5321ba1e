/** Identifies the caller of a call, on platforms that hold one token per person (specification, Caller identity). */
import type { z } from 'zod';
import type { Broker } from '../broker.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { findPersonId } from '../store/people.ts';
import type { CallerIdentity } from '../wire/action.ts';
import { type Assertions, assertionVerifier } from './assertions.ts';
import { type Identity, type PersonHasher, personHasher } from './person-hash.ts';

export type Caller = z.infer<typeof CallerIdentity>;

/** A caller who was identified. Contains a hash in place of the identity itself. */
export type Identified = {
  hash: string;
  verified: boolean;
  /** The issuer of the assertion, or the source. */
  namedBy: string;
};

/** `detail`: why an assertion was refused, in a sentence. */
export type Identification = { ok: true; who: Identified } | { ok: false; detail: string };

export type People = {
  /** Verifies an assertion, or accepts a source's statement; whether an asserted identity counts depends on the platform. */
  identify(organisationId: string, caller: Caller): Promise<Identification>;
  hasher: PersonHasher;
  assertions: Assertions;
};

export function makePeople(broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault' | 'outbound'>): People {
  const hasher = personHasher(broker);
  const assertions = assertionVerifier(broker);
  const identified = async (organisationId: string, identity: Identity): Promise<Identification> => {
    const hash = await hasher.hash(organisationId, identity);
    const verified = 'issuer' in identity;
    return { ok: true, who: { hash, verified, namedBy: verified ? identity.issuer : identity.source } };
  };
  return {
    hasher,
    assertions,
    identify: async (organisationId, caller) => {
      if ('source' in caller) return await identified(organisationId, caller);
      const verified = await assertions.verify(organisationId, caller.assertion);
      return verified.ok ? await identified(organisationId, verified.identity) : verified;
    },
  };
}

/** The setting of a platform that holds one token per person. */
export type PerPerson = NonNullable<Manifest['per_person']>;

/** The detail of a call that names no caller; with any other detail a caller was named, and not accepted. */
export const NO_CALLER_NAMED = 'No caller was named.';

/** Why the caller of a call to such a platform is not identified. */
export type Unidentified = { reason: 'no_caller' | 'asserted_not_allowed'; detail: string };

/**
 * The caller of a call. `personId`: undefined when nothing was ever begun for this person. `namedBy`: the issuer of the assertion, or the
 * source; undefined for calls that were held by a release which did not store it. `who`: absent for a replay.
 */
export type Honoured = {
  verified: boolean;
  personId: string | undefined;
  namedBy: string | undefined;
  who?: Identified;
};

/** Identifies the caller as the platform's settings allow. `identify`: identifies the given caller; called only if there is one. */
export async function honouredCaller(
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  { asserted = [] }: PerPerson,
  given: { caller: Caller | undefined; identify: () => Promise<Identification> },
): Promise<(Honoured & { who: Identified }) | Unidentified> {
  const { caller } = given;
  if (caller === undefined) return { reason: 'no_caller', detail: NO_CALLER_NAMED };
  if ('source' in caller && !asserted.includes(caller.source))
    return {
      reason: 'asserted_not_allowed',
      detail: 'The platform does not accept this source for the identity of a person.',
    };
  const identified = await given.identify();
  if (!identified.ok) return { reason: 'no_caller', detail: identified.detail };
  const { who } = identified;
  const personId = await findPersonId(store.db, organisationId, who.hash);
  return { verified: who.verified, personId, namedBy: who.namedBy, who };
}
