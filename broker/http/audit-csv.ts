/** Audit rows as comma-separated values (RFC 4180) that spreadsheets do not execute as formulas. */
import { shownFlags } from '../audit/audit-flags.ts';
import type { AuditRow } from '../store/audit.ts';
import { instant } from './reply.ts';

/** Characters that start a formula in spreadsheets (OWASP, CSV Injection); Japanese and Chinese editions accept full-width characters, too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

type Cell = string | number | null | undefined;

/**
 * Returns one record with its line end. Text that looks like a formula is prefixed with an apostrophe; numbers, which are ours, stay unchanged. Null
 * is an empty cell.
 */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null || cell === undefined ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns who made a decision or change, or who approved a held call. */
const actorIn = (row: AuditRow): { id?: string; how?: string } => {
  const { change, approval } = shownFlags(row);
  return change ? { id: change.by, how: change.how } : approval ? { id: approval.decided_by, how: approval.how } : {};
};

/** `agents`: names by agent id. `owners`: addresses by uuid. */
export type RowNames = { agents: ReadonlyMap<string, string>; owners: ReadonlyMap<string, string> };

const nameOf = (names: ReadonlyMap<string, string>, id: string | null | undefined) =>
  id === null || id === undefined ? null : (names.get(id) ?? id);

const COLUMNS: Record<string, (row: AuditRow, names: RowNames) => Cell> = {
  created_at: (row) => instant(row.created_at),
  finished_at: (row) => instant(row.finished_at),
  kind: (row) => row.kind,
  result: (row) => row.result,
  reason: (row) => row.reason,
  agent_name: (row, { agents }) => nameOf(agents, row.agent_public_id),
  agent_id: (row) => row.agent_public_id,
  platform: (row) => row.platform_id,
  scope: (row) => row.scope,
  method: (row) => row.method,
  path: (row) => row.path,
  upstream_status: (row) => row.upstream_status,
  actor: (row, { owners }) => nameOf(owners, actorIn(row).id),
  actor_how: (row) => actorIn(row).how,
  detail: (row) => row.detail,
  agent_reason: (row) => row.agent_reason,
  approval_id: (row) => row.approval_id,
  correlation_id: (row) => row.correlation_id,
  audit_id: (row) => row.id,
  row_hash: (row) => row.row_hash,
  receipt_kid: (row) => row.receipt_kid,
};

const CELLS = Object.values(COLUMNS);

/** The header line with the names of the columns. */
export const AUDIT_CSV_HEAD: string = csvLine(Object.keys(COLUMNS));

/** Returns the line of one row. */
export const auditCsvLine = (row: AuditRow, names: RowNames): string => csvLine(CELLS.map((cell) => cell(row, names)));
