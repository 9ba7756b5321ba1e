/** Validates `content_scopes` against the rest of a manifest; each field is valid by itself. */
import type { z } from 'zod';
import { compilePattern } from '../policy/pattern.ts';
import type { ManifestFields } from './manifest-fields.ts';

type Fields = Pick<z.infer<typeof ManifestFields>, 'kind' | 'scopes' | 'content_scopes'>;
type Problem = { path: (string | number)[]; message: string };

/** Returns the problems. */
export function contentProblems({ kind, scopes, content_scopes: contents = {} }: Fields): Problem[] {
  if (kind === 'mcp' && Object.keys(contents).length > 0)
    return [
      { path: ['content_scopes'], message: 'is not for platforms of kind mcp: what a tool gets is for the tool' },
    ];
  return Object.entries(contents).flatMap(([text, rules]) =>
    rules.flatMap(({ pointer, scope, paths = [], unless, is, in: place }, i) => {
      const path = ['content_scopes', text, i];
      const unknown =
        scope === null || Object.hasOwn(scopes, scope)
          ? []
          : [{ path: [...path, 'scope'], message: 'is not one of the scopes above' }];
      const unread =
        unless && (paths.length > 0 || place === 'query')
          ? [{ path: [...path, 'unless'], message: 'is about values of a body: use it without paths and in' }]
          : [];
      const unmatched =
        is === null && (paths.length > 0 || unless || place === 'query')
          ? [{ path: [...path, 'is'], message: 'says all that counts there: use it without paths, unless and in' }]
          : [];
      const unfound =
        pointer === undefined && (paths.length > 0 || unless || is === null || place)
          ? [
              {
                path: [...path, 'pointer'],
                message: 'is missing; say where to look, or leave out paths, unless, is and in',
              },
            ]
          : [];
      const malformed = paths.flatMap((one, j) => {
        const message = patternProblem(one);
        return message === undefined ? [] : [{ path: [...path, 'paths', j], message }];
      });
      return [...unknown, ...unread, ...unmatched, ...unfound, ...malformed];
    }),
  );
}

function patternProblem(text: string): string | undefined {
  try {
    compilePattern(text, 'path');
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
