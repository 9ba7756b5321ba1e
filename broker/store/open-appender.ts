import type { Appender, AppendTo } from './appender.ts';
import { openPostgresAppender } from './postgres-appender.ts';
import { openSqliteAppender } from './sqlite-appender.ts';

/** Opens an appender with connections of its own, on a store that is already open. */
export function openAppender(to: AppendTo): Appender {
  return to.dialect === 'sqlite' ? openSqliteAppender(to.path) : openPostgresAppender(to);
}
