//! A runtime for parallel programs on clusters: threads, mailboxes and messages
