import { expect } from 'vitest';
import { MasterKeyError } from '../../broker/crypto/master-key.ts';

/** Expects that reading a master key throws, and returns the error. */
export function refusal(act: () => unknown): MasterKeyError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(MasterKeyError);
    return error as MasterKeyError;
  }
  throw new Error('it was accepted');
}
