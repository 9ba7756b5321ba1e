/** Describes calls on a platform that a test declares, through its manifest as an operator would write it. */
import { compileManifest, Manifest, type ManifestInput } from '../../broker/platforms/manifest.ts';
import type { CallAsk, JsonObject, Method } from '../../broker/policy/facts.ts';
import { plainSentence } from '../../broker/sentences/part.ts';
import { compileSentences, type Platform, sentenceOf } from '../../broker/sentences/sentences.ts';

export function platformOf(given: Partial<ManifestInput>): Platform {
  const manifest = Manifest.parse({
    kind: 'rest',
    base_url: 'https://api.example',
    auth: { type: 'bearer' },
    scopes: {},
    ...given,
  });
  return { rules: compileManifest('test', manifest), sentences: compileSentences(manifest) };
}

/** Parses `POST /path?query` to a call. */
export function callOf(operation: string, body?: JsonObject): CallAsk {
  const [method = '', endpoint = ''] = operation.split(' ');
  const [path = '', query = ''] = endpoint.split('?');
  return { method: method as Method, path, query, headers: {}, body };
}

export const said = (platform: Platform, operation: string, body?: JsonObject): string =>
  plainSentence(sentenceOf(platform, callOf(operation, body)));
