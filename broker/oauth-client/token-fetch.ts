/** Normalises responses of token endpoints to RFC 6749 section 5, where the deviation is unambiguous. */
import type { ProviderFetch } from '../egress/provider-fetch.ts';

export type TokenOptions = {
  /** The server's `token_type` for bearer tokens. */
  tokenType: string | undefined;
  /** Whether to ignore an ID token: its issuer is unknown, or it was read when the person connected. */
  withoutIdToken: boolean;
};

/** Returns a fetch for token requests. Responses that are not JSON objects are passed through. */
export function tokenFetch(fetch: ProviderFetch, tokenOptions: TokenOptions): ProviderFetch {
  return async (url, options) => {
    const response = await fetch(url, options);
    if (!(response.headers.get('content-type') ?? '').includes('json')) return response;
    const text = await response.text();
    const body = objectIn(text);
    const again = (status: number, value: string) =>
      new Response(value === '' ? null : value, { status, headers: { 'content-type': 'application/json' } });
    if (!body) return again(response.status, text);
    // GitHub and Slack send errors with status 200.
    const isError = response.status === 200 && typeof body.error === 'string' && body.access_token === undefined;
    return again(isError ? 400 : response.status, JSON.stringify(isError ? body : tidy(body, tokenOptions)));
  };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function tidy(body: Record<string, unknown>, { tokenType, withoutIdToken }: TokenOptions): Record<string, unknown> {
  const { token_type: type, expires_in: life, refresh_token: refresh, scope, id_token: idToken, ...rest } = body;
  const seconds = typeof life === 'string' && /^\d{1,10}$/.test(life) ? Number(life) : life;
  const isOurs = tokenType !== undefined && typeof type === 'string' && type.toLowerCase() === tokenType.toLowerCase();
  return {
    ...rest,
    ...(type !== undefined && { token_type: isOurs ? 'bearer' : type }),
    // An unreadable lifetime counts as absent: the upstream refuses the token once it has expired.
    ...(typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0 && { expires_in: seconds }),
    ...(typeof refresh === 'string' && refresh !== '' && { refresh_token: refresh }),
    // Some servers separate scopes by commas.
    ...(typeof scope === 'string' && { scope: scope.split(/[ ,]+/).filter(Boolean).join(' ') }),
    ...(idToken !== undefined && !withoutIdToken && { id_token: idToken }),
  };
}
