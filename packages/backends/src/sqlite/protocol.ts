// What the main thread and the writer thread say to each other. Arrays of plain values, because they are cloned for every
// append; answers come back in the order of the writes, so nothing needs an id.

/** `events` is flat: at, type, body, at, type, body, … */
export type Append = readonly [
  op: 'append',
  tenant: string,
  user: string,
  session: string,
  expectedSeq: number,
  status: string,
  agent: string,
  title: string,
  events: readonly (string | number)[],
]

export type Write =
  | Append
  | readonly [op: 'snapshot', tenant: string, user: string, session: string, seq: number, version: number, data: string]
  | readonly [
      op: 'putFile',
      tenant: string,
      user: string,
      session: string,
      path: string,
      data: Uint8Array,
      ifVersion: number | undefined,
    ]
  | readonly [op: 'deleteFile', tenant: string, user: string, session: string, path: string]
  | readonly [op: 'announce', worker: string, host: string, pid: number, started: string, at: number]
  | readonly [op: 'release', worker: string, host: string, pid: number, started: string]
  | readonly [op: 'probe']

/** Of an append: `stored`, or else the head that it met. Of `putFile`: the new version, 0 on a conflict. Else 0. */
export type Answer = number | WriteFailure
export const stored = -1

/** An SQLite error, taken apart so that it survives the way between threads. */
export interface WriteFailure {
  readonly errcode: number | undefined
  readonly message: string
}

/** To the thread: writes, or the start and the end of watching a session, or the end of it all. */
export type ToThread =
  | readonly Write[]
  | { readonly watch: number; readonly key: readonly [string, string, string]; readonly head: number }
  | { readonly unwatch: number }
  | 'close'

/** From the thread: the answers to the writes, or the watches whose session somebody else has appended to. */
export type FromThread = readonly Answer[] | { readonly wake: readonly number[] }
