// Messages between the main thread and the writer thread. Arrays of plain values, because they are cloned for
// every append; answers come back in the order of the writes, so nothing needs an id.

/** Tenant, user, session. */
export type Key = readonly [tenant: string, user: string, session: string]

/** `events` is flat: at, body, at, body, … */
export type Append = readonly [
  op: 'append',
  ...key: Key,
  expectedSeq: number,
  status: string,
  agent: string,
  title: string,
  wakeAt: number | null,
  /** Flat, in the order of the events that the records describe: seq, user, tool, status, body, … */
  audit: readonly (string | number | null)[],
  events: readonly (string | number)[],
]

export type Write =
  | Append
  | readonly [op: 'snapshot', ...key: Key, seq: number, version: number, data: string]
  | readonly [op: 'putFile', ...key: Key, path: string, data: Uint8Array, ifVersion: number | undefined]
  | readonly [op: 'erase', ...key: Key, expectedSeq: number]
  /** Removes up to 500 events of erased sessions. */
  | readonly [op: 'eraseSome']
  /** An audit record that describes no event. `at` to `body` as in the table of events. */
  | readonly [op: 'note', tenant: string, at: number, user: string, tool: string, status: string | null, audit: string]
  | readonly [op: 'eraseFiles', ...key: Key]
  | readonly [op: 'deleteFile', ...key: Key, path: string]
  | readonly [
      op: 'announce',
      worker: string,
      host: string,
      pid: number,
      started: string,
      at: number,
      abandoned: boolean,
    ]
  | readonly [op: 'release', worker: string, host: string, pid: number, started: string]
  | readonly [op: 'forgetWorkers', silentSince: number]
  | readonly [op: 'probe']

/**
 * For an append and an erasure: `stored`, or the current head. For `putFile`: the new version, 0 on a conflict. For
 * `eraseSome`: how many events are gone. For `eraseFiles`: how many files. Otherwise 0.
 */
export type WriterAnswer = number | WriteFailure
export const stored = -1

/** An SQLite error as plain data, so that it can be sent between threads. */
export interface WriteFailure {
  readonly errcode: number | undefined
  readonly message: string
  /** Not an SQLite error: the file or its log was deleted or replaced. */
  readonly displaced?: true
}

/** To the thread: writes, starting or stopping to watch a session, or shutdown. */
export type ToWriter =
  | { readonly writes: readonly Write[] }
  | { readonly watch: number; readonly key: Key; readonly head: number }
  | { readonly unwatch: number }
  | { readonly close: true }

/**
 * From the thread: the answers to writes in order, or the watches whose session another connection has written to.
 */
export type FromWriter = { readonly answers: readonly WriterAnswer[] } | { readonly wake: readonly number[] }
