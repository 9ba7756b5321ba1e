/** Identifiers of agents and authorities in TRQP (specification, TRQP request; did:web Method Specification; SPIFFE ID). */
import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';

/** `host`: in lower case, with a port after a colon; undefined for a bare agent id, which is local. */
export type EntityName = {
  host?: string;
  /** Undefined: well-formed, but not an agent. */
  agentId?: string;
  /** The organisation in the name. */
  organisationId?: string;
};

/** `organisationId` undefined with `root` true: the whole registry; with `root` false: another path at that host. */
export type AuthorityName = { host: string; root: boolean; organisationId?: string };

/** A host name, a port after `%3A` or (as often written) a colon, and path segments. */
const DID_WEB =
  /^did:web:((?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:(?:%3[Aa]|:)(\d{1,5}))?((?::(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)*)$/;
/** SPIFFE ID, section 2; also allows a port, because the broker's host may have one. */
const SPIFFE = /^spiffe:\/\/([a-z0-9._-]{1,255}(?::\d{1,5})?)((?:\/[A-Za-z0-9._-]+)*)$/;
const MAX_HOST_LENGTH = 253;

/** Parses the name of an entity; undefined when it is malformed. */
export function readEntity(id: string): EntityName | undefined {
  if (AGENT_ID_PATTERN.test(id)) return { agentId: id };
  const did = readDidWeb(id);
  if (did) {
    const [kind, agentId = '', ...more] = did.path;
    if (kind !== 'agents') return { host: did.host };
    return more.length === 0 && AGENT_ID_PATTERN.test(agentId) ? { host: did.host, agentId } : undefined;
  }
  const [, host, path = ''] = SPIFFE.exec(id) ?? [];
  if (host === undefined) return undefined;
  const segments = path.split('/').slice(1);
  if (segments.some((segment) => segment === '.' || segment === '..')) return undefined;
  const [orgs, organisationId = '', agents, agentId = '', ...more] = segments;
  const isAgents =
    orgs === 'orgs' &&
    agents === 'agents' &&
    more.length === 0 &&
    UUID_PATTERN.test(organisationId) &&
    AGENT_ID_PATTERN.test(agentId);
  return isAgents ? { host, agentId, organisationId: organisationId.toLowerCase() } : { host };
}

/** Parses the name of an authority; undefined when it is malformed. */
export function readAuthority(id: string): AuthorityName | undefined {
  const did = readDidWeb(id);
  if (!did) return undefined;
  const { host, path } = did;
  if (path.length === 0) return { host, root: true };
  const [kind, organisationId = '', ...more] = path;
  if (kind !== 'orgs') return { host, root: false };
  return more.length === 0 && UUID_PATTERN.test(organisationId)
    ? { host, root: false, organisationId: organisationId.toLowerCase() }
    : undefined;
}

function readDidWeb(id: string): { host: string; path: string[] } | undefined {
  const [, host, port, path = ''] = DID_WEB.exec(id) ?? [];
  if (host === undefined || host.length > MAX_HOST_LENGTH) return undefined;
  // Host names are case-insensitive (RFC 4343).
  return { host: host.toLowerCase() + (port === undefined ? '' : `:${port}`), path: path.split(':').slice(1) };
}
