use std::process::ExitCode;

fn main() -> ExitCode {
    belfry::cli::main()
}
