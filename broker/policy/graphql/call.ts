/** Parses the document of a GraphQL call once for all that reads it. */
import type { JsonObject } from '../../../json/json-value.ts';
import { type GraphqlCall, parseGraphqlCall } from './graphql.ts';

/** By body: a call is classified when it is read, when its scope is inferred, when it is decided, and when it is recorded. */
const results = new WeakMap<JsonObject, GraphqlCall>();

/**
 * @param body the body of the call (`data`), already parsed without duplicate names; must not be modified afterwards
 * @returns as `parseGraphqlCall`
 */
export function readGraphqlCall(body: JsonObject = {}): GraphqlCall {
  const known = results.get(body);
  if (known !== undefined) return known;
  const result = parseGraphqlCall(body);
  results.set(body, result);
  return result;
}
