/**
 * What tests begin with, made by hooks and used as if it were there from the start:
 *
 *     const world = givenWorld(store);
 *     const organisation = shared(() => world.demoOrganisation());
 *     const agent = fresh(() => organisation.agent());
 *
 * Fixtures of `test.extend` come as a parameter that each test takes apart, which helpers beside the tests cannot see; these are
 * in scope for both.
 */
import { beforeAll, beforeEach } from 'vitest';
import type { StoreKind } from './stores.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

/** Made once, before the tests of this `describe`. */
export function shared<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeAll(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/** Made before each test of this `describe`. */
export function fresh<T extends object>(make: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeEach(async () => {
    made = await make();
  });
  return standIn(() => made);
}

/**
 * A broker for the tests of this `describe`. Before each its clock is right, and its platform has seen nothing and answers by
 * itself. `environment`: a function where hooks before this one find out what is in it.
 */
export function givenWorld(
  store: StoreKind = 'sqlite',
  environment: Record<string, string> | (() => Record<string, string>) = {},
  options: WorldOptions = {},
): World {
  const world = shared(() =>
    startWorld(store, typeof environment === 'function' ? environment() : environment, options),
  );
  beforeEach(() => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    world.upstream.answer = undefined;
  });
  return world;
}

/** Passes everything on to an object that is not there yet. */
function standIn<T extends object>(current: () => T | undefined): T {
  const now = (): T => {
    const made = current();
    if (made === undefined) throw new Error('This is made when the tests run: use it in a test or a hook.');
    return made;
  };
  return new Proxy({} as T, {
    get: (_, key) => {
      const made = now();
      const value = Reflect.get(made, key);
      // Bound, because what is private to a class cannot be reached through a proxy.
      return typeof value === 'function' ? value.bind(made) : value;
    },
    set: (_, key, value) => Reflect.set(now(), key, value),
    has: (_, key) => Reflect.has(now(), key),
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(now(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(now()),
  });
}
