// What every back end must do, as a suite for any test runner that has a `test(title, run)`.
import { busConformance } from './bus.ts'
import { fileConformance } from './files.ts'
import { journalConformance } from './journal.ts'
import { keyConformance } from './keys.ts'
import { dataConformance } from './life.ts'
import { listConformance } from './list.ts'
import { lockConformance } from './locks.ts'
import { notesConformance } from './notes.ts'
import { processConformance } from './processes.ts'
import { queueConformance } from './queue.ts'
import { lifeConformance, snapshotConformance, workerConformance } from './rest.ts'
import { checkOf, type Subject } from './support.ts'

export { auditRecord } from './notes.ts'
export { conformanceEvent, eventsAfter, readAll, type Subject, someKey, summary } from './support.ts'

/**
 * Registers the suite for one back end.
 *
 * @example backendConformance({ name: 'mine', test, open: (directory) => openMine(directory) })
 */
export function backendConformance(subject: Subject): void {
  const check = checkOf(subject)
  journalConformance(check)
  keyConformance(check)
  listConformance(check)
  notesConformance(check)
  dataConformance(check)
  snapshotConformance(check)
  fileConformance(check)
  workerConformance(check)
  queueConformance(check)
  busConformance(check)
  lockConformance(check)
  lifeConformance(check)
  if (subject.processes !== undefined) processConformance(subject, subject.processes)
}
