/** Tables of platforms: their manifests, their secrets, and the tools of MCP servers. */
import type { ToolEffect } from '../../policy/tool.ts';
import type { Bit } from './column-types.ts';

export type PlatformTable = {
  organisation_id: string;
  platform_id: string;
  version: number;
  suspended: Bit;
  created_at: number;
};

/** Immutable once written: a version can be a cache key. */
export type PlatformVersionTable = {
  organisation_id: string;
  platform_id: string;
  version: number;
  manifest: string;
  /** The entry that the manifest of a built-in platform was generated from, as JSON; null: a custom platform, or stored by an earlier release. */
  entry: string | null;
  created_at: number;
};

/** Secrets that manifests reference: `client_id`, `client_secret`. */
export type PlatformSecretTable = {
  organisation_id: string;
  id: string;
  platform_id: string;
  name: string;
  /** Sealed. */
  value: Uint8Array;
  created_at: number;
};

/** A tool of an MCP server: its accepted definition (by an owner, or by the first list), and the last one seen. */
export type McpToolTable = {
  organisation_id: string;
  platform_id: string;
  /** The server's address. */
  server: string;
  name: string;
  /** Canonical JSON of the accepted definition; null: not accepted yet. */
  accepted: string | null;
  accepted_hash: string | null;
  accepted_at: number | null;
  /** The owner's uuid; null: accepted because it was in the server's first list. */
  accepted_by: string | null;
  offered: string;
  offered_hash: string;
  offered_at: number;
  effect: ToolEffect;
  /** The owner's uuid; null: from the accepted definition's annotations. */
  effect_by: string | null;
};
