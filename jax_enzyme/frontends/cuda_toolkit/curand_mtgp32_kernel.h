// The toolkit has no such header outside its random numbers, and clang asks for it.
