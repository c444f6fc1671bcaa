// Written by `python -m explorer.app.typescript` from explorer/app/protocol*.py: change those.
declare namespace Protocol {
  interface WalkAccess {
    text: string;
    array: string;
    space: string;
    writes: boolean;
    strides: Record<string, number | null>;
    indices: Record<string, [number, number][]>;
    marks: Record<string, string>;
  }
  interface Walk {
    loops: Record<string, string>;
    accesses: WalkAccess[];
    notes: string[];
  }
  interface Row {
    key: string;
    node: string | null;
    kind: string;
    depth: number;
    label: string;
    html: string;
    walk?: Walk;
  }
  interface Problem {
    what: string;
    where: string;
    why: string;
    hints: Hint[];
    finding: Witness | null;
    html: string;
    line?: number;
  }
  interface Hint {
    text: string;
    call: string | null;
  }
  interface Witness {
    question: string;
    kind: string;
    array: string;
    element: number[];
    source: string;
    sink: string;
    source_order: string;
    sink_order: string;
    nodes: string[];
    lines: number[];
  }
  interface Selection {
    node: string | null;
    kind: string;
    title: string;
    facts: [string, string][];
    related: string[];
  }
  interface Badge {
    name: string;
    state: "earned" | "open" | "refuted";
    detail: string;
  }
  interface Head {
    program: string;
    signature: string;
    badges: Badge[];
    undo: string | null;
    redo: string | null;
    obligations: Problem[];
    busy: string;
    large: string;
  }
  interface Cuda {
    lines: string[];
    nodes: Record<string, number[]>;
    arch: string;
    problem: Problem | null;
    truncated: string;
    passes: Pass[];
  }
  interface Pass {
    name: string;
    what: string;
  }
  interface AfterPass {
    name: string;
    lines: string[];
    nodes: Record<string, number[]>;
    changed: number[];
    change: string;
    truncated: string;
  }
  interface State {
    id: string;
    parent: string | null;
    title: string;
    call: string;
    legal: boolean;
    obligations: number;
    correct: boolean | null;
    time_us: number | null;
    share: number | null;
    device: string;
    gpu: string;
    priced_us: number | null;
  }
  interface History {
    states: State[];
    current: string;
    path: string[];
  }
  interface ScriptError {
    line: number;
    problem: Problem;
  }
  interface ScriptPane {
    text: string;
    steps: [string, number][];
    error: ScriptError | null;
  }
  interface ResumePane {
    widget: string;
    text: string;
    target: string;
    actions: string;
    steps: number;
    program: string;
  }
  interface Field {
    name: string;
    kind: "loop" | "loops" | "leaf" | "array" | "arrays" | "node" | "kernel" | "int" | "ints" | "choice" | "bool" | "name";
    help: string;
    required: boolean;
    value: any;
    choices?: string[];
    min?: number;
    max?: number;
  }
  interface MoveData {
    key: string;
    name: string;
    title: string;
    help: string;
    applies: boolean;
    call: string | null;
    form: Field[];
    values: Record<string, any>;
    concerns: boolean;
    problem: Problem | null;
  }
  interface WayData {
    how: string;
    words: string;
    calls: string[];
    applies: boolean;
    problem: Problem | null;
    deterministic: boolean;
    launches: number;
    parts: number;
    workspace: string;
    initial: string;
    atomics: number;
    barriers: number;
    errors: [string, number][];
    label: string;
  }
  interface WaysData {
    target: string;
    array: string;
    over: "blocks" | "threads";
    loops: string[];
    unit: string;
    ways: WayData[];
  }
  interface MovesPane {
    node: string | null;
    title: string;
    pending: boolean;
    ways: WaysData[];
    moves: MoveData[];
  }
  interface DiffLine {
    sign: string;
    text: string;
  }
  interface Preview {
    call: string;
    applies: boolean;
    diff: DiffLine[];
    problem: Problem | null;
    errors: Record<string, string>;
    effects: string[];
  }
  interface Counterexample {
    call: string;
    caught: boolean;
    html: string;
  }
  interface DeviceChoice {
    name: string;
    label: string;
    available: boolean;
    why: string;
  }
  interface RunPane {
    status: "idle" | "running" | "done" | "failed" | "cancelled";
    doing: string;
    fraction: number | null;
    device: string;
    devices: DeviceChoice[];
    sizes: Record<string, number>;
    correct: boolean | null;
    verdict: string;
    samples: Record<string, number[]>;
    gpu: string;
    priced_us: number | null;
    html: string;
    problem: Problem | null;
  }
  interface MeasurePane {
    status: "idle" | "running" | "done" | "failed" | "cancelled";
    doing: string;
    device: string;
    number: number;
    problem: Problem | null;
  }
  interface FigureData {
    name: string;
    title: string;
    spec: Record<string, any>;
    note: string;
    options: (Record<string, any>)[];
    header: string[];
    table: any[][];
    svg: string;
    sign: string;
  }
  interface SameFigure {
    sign: string;
  }
  interface Compared {
    a: string;
    b: string;
    loops: DiffLine[];
    cuda: DiffLine[];
    rows: string[][];
  }
  interface GpuChoice {
    name: string;
    here: boolean;
    words: string;
  }
  interface TargetPane {
    gpu: string;
    gpus: GpuChoice[];
  }
  interface StrategyKind {
    name: string;
    title: string;
    help: string;
  }
  interface StrategyStep {
    call: string;
    name: string;
    words: string;
    effects: string[];
    estimate_us: number | null;
    open: number;
  }
  interface StrategyPane {
    kinds: StrategyKind[];
    status: "idle" | "running" | "done" | "failed" | "cancelled";
    doing: string;
    fraction: number | null;
    name: string;
    gpu: string;
    at: number | null;
    summary: string;
    start_us: number | null;
    total_us: number | null;
    terms: [string, number][];
    steps: StrategyStep[];
    rule: string;
    problem: Problem | null;
  }
  interface SearchTrial {
    number: number;
    label: string;
    best: boolean;
    here: boolean;
    time_us: number | null;
    estimate_us: number | null;
    html: string;
  }
  interface SearchPane {
    status: "idle" | "running" | "done" | "failed" | "cancelled";
    doing: string;
    fraction: number | null;
    usual: number;
    most: number;
    total: number;
    gpu: string;
    remembered: boolean;
    html: string;
    trials: SearchTrial[];
    problem: Problem | null;
  }
  interface OptionData {
    scheme: string;
    applies: boolean;
    problem: Problem | null;
    total_us: number | null;
    saved_bytes: number;
    saved_launches: number;
    registers: number;
    shared_bytes: number;
    occupancy: number;
    recomputed: number;
    terms: [string, number][];
    words: string;
  }
  interface EdgeData {
    id: string;
    array: string;
    into: string;
    producer: string;
    consumer: string;
    kind: string;
    lines: number[];
    options: OptionData[];
  }
  interface StitchPrice {
    chosen: Record<string, string>;
    groups: string[][];
    terms: [string, number][];
    total_us: number;
    launches: number;
    steps: number;
  }
  interface StitchPane {
    program: string;
    gpu: string;
    status: "idle" | "running" | "done" | "failed" | "cancelled";
    doing: string;
    fraction: number | null;
    schemes: [string, string][];
    edges: EdgeData[];
    model: StitchPrice | null;
    shown_us: number | null;
    problem: Problem | null;
  }
  interface Panes {
    head: Head;
    loops: Row[];
    tree: Row[];
    moves: MovesPane;
    selection: Selection;
    cuda: Cuda;
    history: History;
    run: RunPane;
    script: ScriptPane;
    strategy: StrategyPane;
    search: SearchPane;
    measure: MeasurePane;
    stitching: StitchPane;
    target: TargetPane;
    resume: ResumePane;
  }
  interface Ptx {
    arch: string;
    text?: string;
    why?: string;
  }
  interface Exported {
    filename: string;
    text: string;
  }
  interface Nothing {
  }
  interface Answers {
    preview: Preview;
    check: Preview;
    compare: Compared;
    stitch_price: StitchPrice;
    counterexample: Counterexample;
    figure: FigureData | SameFigure;
    ir: AfterPass;
    ptx: Ptx;
    export: Exported;
    plotly: Nothing;
  }
  interface OfNode {
    node: string | null;
  }
  interface OfCall {
    call: string;
  }
  interface OfForm {
    name: string;
    arguments: Record<string, any>;
  }
  interface OfCalls {
    calls: string[];
    title: string;
  }
  interface OfState {
    state: string;
  }
  interface OfTitle {
    state: string;
    title: string;
  }
  interface OfPair {
    a: string;
    b: string;
  }
  interface OfText {
    text: string;
  }
  interface OfSizes {
    sizes: Record<string, number>;
  }
  interface OfDevice {
    device: string;
  }
  interface OfRun {
    time: boolean;
  }
  interface OfGpu {
    gpu: string;
  }
  interface OfName {
    name: string;
  }
  interface OfStep {
    to: number;
    whole?: boolean;
  }
  interface OfSearch {
    trials: number | string;
    again?: boolean;
  }
  interface OfTrial {
    trial: number;
  }
  interface OfChoices {
    choices: Record<string, string>;
  }
  interface OfFigure {
    name: string;
    options: Record<string, any>;
    call?: string;
    have?: string;
  }
  interface OfPass {
    after: string;
  }
  interface OfArch {
    arch: string;
  }
  interface OfExport {
    what: "cu" | "json" | "script" | "share";
  }
  interface Requests {
    ready: Nothing;
    select: OfNode;
    preview: OfCall;
    check: OfForm;
    apply: OfCall | OfForm;
    take: OfCalls;
    undo: Nothing;
    redo: Nothing;
    goto: OfState;
    rename: OfTitle;
    compare: OfPair;
    script: OfText;
    sizes: OfSizes;
    device: OfDevice;
    measure: OfDevice;
    run: OfRun;
    cancel: Nothing;
    target: OfGpu;
    strategy: OfName;
    strategy_stop: Nothing;
    strategy_step: OfStep;
    search: OfSearch;
    search_stop: Nothing;
    search_apply: OfTrial;
    stitching: Nothing;
    stitch_stop: Nothing;
    stitch_price: OfChoices;
    stitch_apply: OfChoices;
    counterexample: OfCall;
    figure: OfFigure;
    ir: OfPass;
    ptx: OfArch;
    export: OfExport;
    plotly: Nothing;
  }
}
