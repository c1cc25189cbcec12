export type IndexProgress =
  | { readonly phase: 'reading'; readonly done: number; readonly total: number; readonly path: string }
  | { readonly phase: 'embedding'; readonly done: number; readonly total: number }
