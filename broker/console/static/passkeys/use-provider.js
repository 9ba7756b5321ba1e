// What a passkey is good for depends on how owners sign in: at an identity provider, no passkey signs anybody in.
import { ask } from '/console/api.js';
import { useEffect, useState } from '/console/html.js';

/**
 * The host of the identity provider where owners sign in; null: they sign in at the broker itself. Undefined while nobody knows, which
 * promises nothing.
 *
 * @returns {string | null | undefined}
 */
export function useProvider() {
  const [provider, setProvider] = useState(/** @type {string | null | undefined} */ (undefined));
  useEffect(() => {
    ask('GET', '/owner/sign-in-options', undefined, { signIn: false }).then(
      (options) => setProvider(options.method === 'oidc' ? options.provider : null),
      () => {},
    );
  }, []);
  return provider;
}

/**
 * What a passkey can do from now on, as the end of a sentence.
 *
 * @param {string | null | undefined} provider as useProvider answers it
 */
export const canDo = (provider) => (provider === null ? 'sign in and decide' : 'decide');
