/** Schemas of the terms of a grant: in governance files, in the owner API, and of grants that a parent passes to a child. */
import { z } from 'zod';
import { REF_CHANGES } from '../policy/facts.ts';
import { refPatternProblem } from '../policy/refs/patterns.ts';
import { EXPIRY_FORMS, EXPIRY_PATTERN, parseExpiry } from './expiry.ts';
import { name } from './name.ts';

/** An entry of the repository constraint (specification, Repository constraint); names as code hosts take them. */
const REPOSITORY = /^(?!\.{1,2}\/)[A-Za-z0-9._-]{1,100}\/(?:\*|(?!\.{1,2}$|.*\.[Gg][Ii][Tt]$)[A-Za-z0-9._-]{1,100})$/;

/** An entry of the ref constraint. */
const RefPattern = z
  .string()
  .max(256)
  .superRefine((text, context) => {
    const problem = refPatternProblem(text);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

export const GrantTerms = z
  .strictObject({
    scopes: z
      .array(z.string().min(1).max(128))
      .min(1, 'names no scope; remove the whole grant instead')
      .max(500)
      .describe("Scopes of the platform's manifest."),
    expires: z
      .string()
      .regex(EXPIRY_PATTERN, EXPIRY_FORMS)
      .refine((text) => parseExpiry(text) !== undefined, EXPIRY_FORMS)
      .optional()
      .describe(
        'When the grant ends: a time span ("30d", "12h", "45m") from the first time it is applied, or an RFC 3339 moment. A span runs on until its text is changed.',
      ),
    require_approval: z.boolean().optional().describe('Whether every call waits for an approval. Default: false.'),
    recipients: z
      .array(z.string().min(1).max(320))
      .max(1000)
      .optional()
      .describe(
        'Who may receive what is sent: addresses, domains as "@acme.example", or ids of the platform as "C024BE91L". Absent: anybody; empty: nobody.',
      ),
    repos: z
      .array(z.string().regex(REPOSITORY, 'is no repository; write "owner/name" (without ".git") or "owner/*"'))
      .max(64, 'has more than 64 entries; write "owner/*" for all of an owner')
      .optional()
      .describe('Repositories it is limited to: "owner/name" or "owner/*", at most 64. Absent: all; empty: none.'),
    allow_repo_creation: z
      .boolean()
      .optional()
      .describe('Whether repositories may be created under the owners in `repos`. Default: false.'),
    refs: z
      .array(RefPattern)
      .max(64, 'has more than 64 entries; write "agent/**" for all below a name')
      .optional()
      .describe(
        'Branches and tags that may be written: "agent/*" (branches), "release/**" (all below), "refs/tags/v*", at most 64. Absent: all; empty: none.',
      ),
    ref_changes: z
      .array(z.enum(REF_CHANGES))
      .max(REF_CHANGES.length)
      .optional()
      .describe('How branches and tags may be changed: create, update, delete. Absent: all three; empty: not at all.'),
    connection: name('The connection that it uses; otherwise the default one of the platform.').optional(),
  })
  .describe('What an agent may do on a platform.');
export type GrantTerms = z.infer<typeof GrantTerms>;
